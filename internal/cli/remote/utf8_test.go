package remote_test

import (
	"errors"
	"net/http"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"
)

// TestANameThatIsNoTextIsAMistakeInTheCommand: messages carry UTF-8 alone, and what refuses others is deep below.
func TestANameThatIsNoTextIsAMistakeInTheCommand(t *testing.T) {
	client := apiv1connect.NewAdminClient(http.DefaultClient, "http://127.0.0.1:1")
	_, err := remote.Ask(t.Context(), client.GetService, &apiv1.GetServiceRequest{Name: "w\xffb"}, "http://127.0.0.1:1", "")
	var known *exit.Error
	if !errors.As(err, &known) || known.Code != exit.Usage || known.Error() != "a name or text in this command is not UTF-8" {
		t.Errorf("%v; want exit code %d", err, exit.Usage)
	}
}
