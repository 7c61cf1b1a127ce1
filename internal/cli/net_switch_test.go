package cli

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/api"
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
	var out, errs strings.Builder
	code := Main([]string{"net", "switch", "ls", "--api", l.Addr().String()}, nil, &out, &errs)
	if code != int(ExitRefused) || !strings.Contains(errs.String(), "drives no OpenFlow switches\nhint: start it with --openflow") {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
}
