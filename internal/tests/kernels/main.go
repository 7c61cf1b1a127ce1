package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// A job is what the command line asks for.
type job struct {
	kernels []string // series such as 6.1
	cache   string
	record  string
	only    string // part of the names of packages, empty: all
	tests   string // pattern of the names of tests, empty: the selected ones
	keep    bool
	limit   time.Duration // of one kernel, under KVM
}

func main() {
	if os.Getpid() == 1 {
		initialize()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == inside {
		runSuites()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	j, err := parse(os.Args[1:])
	if err == nil {
		err = j.run(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func parse(args []string) (j job, err error) {
	fs := flag.NewFlagSet("kernels", flag.ContinueOnError)
	fs.StringVar(&j.cache, "cache", defaultCache(), "directory where unpacked kernels are kept")
	fs.StringVar(&j.record, "record", "", "document whose table is written anew")
	fs.StringVar(&j.only, "only", "", "run only packages whose name contains this")
	fs.StringVar(&j.tests, "run", "", "run only tests whose name matches this pattern")
	fs.BoolVar(&j.keep, "keep", false, "keep the output of the tests")
	fs.DurationVar(&j.limit, "limit", 12*time.Minute, "time that one kernel may take; ten times as much without KVM")
	if err := fs.Parse(args); err != nil {
		return j, err
	}
	for _, name := range fs.Args() {
		if _, err := parseSeries(name); err != nil {
			return j, err
		}
		j.kernels = append(j.kernels, name)
	}
	if j.kernels == nil {
		j.kernels = defaultKernels()
	}
	return j, nil
}

func defaultCache() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "scaffold-kernels")
	}
	return "/var/cache/scaffold-kernels"
}

// run boots one kernel after the other: each is given the whole machine.
func (j job) run(ctx context.Context, out io.Writer) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("this needs root, for the machine's files are read as root\nhint: make test-kernels")
	}
	work, err := os.MkdirTemp("", "scaffold-kernels-")
	if err != nil {
		return err
	}
	if j.keep {
		fmt.Fprintln(out, "output is kept in", work)
	} else {
		defer os.RemoveAll(work)
	}
	suites, err := build(ctx, work, j.only, j.tests)
	if err != nil {
		return err
	}
	var results []result
	for _, name := range j.kernels {
		r, err := j.try(ctx, name, suites, filepath.Join(work, name), out)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", name, err)
		}
		results = append(results, r)
	}
	table := markdown(results)
	fmt.Fprint(out, "\n", table)
	if j.record != "" {
		if err := record(j.record, table); err != nil {
			return err
		}
	}
	return verdict(results, kvm())
}

// try fetches one kernel if need be, boots it and reads what it left.
func (j job) try(ctx context.Context, name string, suites []suite, dir string, out io.Writer) (result, error) {
	k, err := fetch(ctx, j.cache, name, out)
	if err != nil {
		return result{}, err
	}
	fmt.Fprintf(out, "== %s, %s\n", k.release, acceleration())
	begun := time.Now()
	err = boot(ctx, k, suites, dir, j.limit)
	if err != nil && !errors.Is(err, errTime) {
		return result{}, err
	}
	r, unread := collect(k, suites, dir)
	r.took = time.Since(begun)
	if unread != nil {
		return r, errors.Join(err, unread)
	}
	fmt.Fprint(out, r.text())
	return r, nil
}
