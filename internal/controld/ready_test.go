package controld

import (
	"testing"

	"scaffold.dev/scaffold/internal/nstest"
)

func TestAControllerTellsTheServiceManagerThatItIsReady(t *testing.T) {
	next := nstest.Manager(t)
	start(t, Config{})
	if got := next(); got != "READY=1" {
		t.Errorf("the service manager hears %q", got)
	}
}
