package network

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/command/commandtest"
	"scaffold.dev/scaffold/internal/cli/exit"
)

func TestAControllerWithoutSwitchesSaysSo(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, http.NotFoundHandler(), l) }()
	defer func() { stop(); <-done }()
	code, _, said := commandtest.Run(Command(), "", "net", "switch", "ls", "--api", l.Addr().String())
	if code != int(exit.Refused) || !strings.Contains(said, "drives no OpenFlow switches\nhint: start it with --openflow") {
		t.Errorf("exit code %d, %s", code, said)
	}
}
