package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const usage = "usage: runner check|all|long [PART-OF-A-STAGE'S-NAME] | steady -test TestName [-runs N] [-package ./dir] [-noise=false] [-race] [-autogroup]"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := 0
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "runner:", err)
		code = 1
		if errors.Is(err, errUsage) {
			code = 2
		}
	}
	stop()
	os.Exit(code)
}

var errUsage = errors.New(usage)

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	switch args[0] {
	case "check", "all", "long":
		if len(args) > 2 {
			return errUsage
		}
		defer withoutGroups()()
		return suite(ctx, args[0], strings.Join(args[1:], ""))
	case "steady":
		s := steady{}
		f := flag.NewFlagSet("steady", flag.ContinueOnError)
		f.StringVar(&s.test, "test", "", "the name of one test")
		f.IntVar(&s.runs, "runs", 50, "how often")
		f.StringVar(&s.pkg, "package", "", "its package, as ./internal/sid; found by the test's name where it is left out")
		f.BoolVar(&s.noise, "noise", true, "keep each processor busy meanwhile")
		f.BoolVar(&s.autogroup, "autogroup", false, "leave kernel.sched_autogroup_enabled as it is, also on a kernel that starves tests then")
		f.BoolVar(&s.race, "race", false, "with the race detector")
		if err := f.Parse(args[1:]); err != nil || f.NArg() > 0 || s.test == "" || s.runs < 1 {
			return errUsage
		}
		if !s.autogroup {
			defer withoutGroups()()
		}
		return s.run(ctx)
	}
	return errUsage
}

// suite runs the stages of a kind whose names have a part, until one fails, and reports.
func suite(ctx context.Context, kind, part string) error {
	stages, err := stagesOf(kind)
	if err != nil {
		return err
	}
	if stages = chosen(stages, part); len(stages) == 0 {
		return fmt.Errorf("no stage of %s has %q in its name", kind, part)
	}
	r, err := newRunner(kind)
	if err != nil {
		return err
	}
	for _, beside := range stages {
		r.stage(ctx, beside)
		if ctx.Err() != nil || r.broken() && kind != "long" { // after hours, all is told that there is to tell
			break
		}
	}
	if ctx.Err() != nil {
		fmt.Println("interrupted: what follows is of the stages that had ended")
	}
	return errors.Join(r.report(os.Stdout), ctx.Err())
}
