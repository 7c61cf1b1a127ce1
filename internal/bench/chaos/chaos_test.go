package chaos_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/examples"
	"scaffold.dev/scaffold/internal/bench"
	"scaffold.dev/scaffold/internal/bench/chaos"
	"scaffold.dev/scaffold/internal/cli"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/nstest"
)

// This test binary is also the whole product: the lab starts its daemons and load programs from it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	nstest.Main(m)
}

// Half a minute of moves, deaths, drains, cuts and restarts: every byte is right, and nothing ends that no event
// explains. `scaffold bench chaos --seed 1` is the same at length.
func TestNothingIsOddInHalfAMinuteOfChaos(t *testing.T) {
	nstest.Root(t)
	text, err := examples.Files.ReadFile("moves.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := lab.Parse("moves.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	f.Name = nstest.LabName()
	length := 30 * time.Second
	if testing.Short() {
		length = 5 * time.Second
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
