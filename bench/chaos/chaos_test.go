package chaos_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/chaos"
	benchcli "scaffold.dev/scaffold/bench/cli"
	"scaffold.dev/scaffold/examples"
	"scaffold.dev/scaffold/internal/cli"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// This test binary is also the whole product, and scaffold-bench: the lab starts its daemons and load programs from it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		os.Exit(benchcli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	nstest.Main(m)
}

// Half a minute of moves, deaths, drains, cuts and restarts: every byte is right, and nothing ends that no event
// explains. `scaffold bench chaos --seed 1` is the same at length.
func TestNothingIsOddInChaos(t *testing.T) {
	safety.Test(t, safety.Bytes)
	nstest.Root(t)
	text, err := examples.Files.ReadFile("moves.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := file.Parse("moves.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	f.Name = nstest.LabName()
	length := 8 * time.Second // each kind of event happens
	if nstest.Long() {
		length = 5 * time.Minute
	}
	var res *chaos.Result
	err = lab.With(t.Context(), f, lab.Options{}, func(ctx context.Context, l *lab.Lab) error {
		rig, err := bench.NewRig(l)
		if err != nil {
			return err
		}
		res, err = chaos.Run(ctx, rig, chaos.WorldOf(f), chaos.Options{Seed: 1, Duration: length, Moves: true}, t.Logf)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Odd) > 0 {
		var table strings.Builder
		res.WriteTable(&table)
		t.Errorf("%d things did not hold:\n%s", len(res.Odd), table.String())
	}
}
