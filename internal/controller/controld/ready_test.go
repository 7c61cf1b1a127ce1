package controld

import (
	"testing"

	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestAControllerTellsTheServiceManagerThatItIsReady(t *testing.T) {
	next := nstest.Manager(t)
	start(t, config.Config{})
	if got := next(); got != "READY=1" {
		t.Errorf("the service manager hears %q", got)
	}
}
