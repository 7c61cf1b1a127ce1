package cli

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/remote"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"scaffold": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the command line as a process against a controller that knows one small network.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata",
		Setup: serveFake,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
		},
	})
}

func serveFake(env *testscript.Env) error {
	// A Unix socket's path has 107 characters; the script's own directory may have more.
	dir, err := os.MkdirTemp("", "cli")
	if err != nil {
		return err
	}
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- api.Serve(ctx, newFake(), listener) }() // ends in Defer
	env.Defer(func() {
		stop()
		<-served
		os.RemoveAll(dir)
	})
	env.Setenv(remote.APIVariable, "unix:"+socket)
	return nil
}
