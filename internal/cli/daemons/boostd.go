package daemons

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/boost/boostd"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/operate/obs"
)

const aboutBoostd = `Boostd is an agent of boost: it takes TCP connections that pass this machine, carries their bytes to
another agent over connections that are there already, and has that one connect to the server. Both ends of
the connection see each other's real addresses. It belongs on a router, or on a machine to which a switch
sends the connections.

The file says which connections (lanes), which agents, by which interfaces. An agent that is stopped, killed
or frozen takes no new connections: they pass as if it were not there. Connections that it carries end by a
reset at both ends, never as if they were complete.

It is two processes. The one that you start keeps the connections; the other one, its worker, does the work.
A worker that dies is replaced, and connections go on. SIGUSR2 has it replaced by one of the program that has
this one's name by then, after an upgrade; where that does not work, this one goes on.

"scaffold boostd key FILE" prints this agent's public key, for the files of the others.`

// Boostd is `scaffold boostd`.
func Boostd() *cobra.Command {
	var file, bpffs, format, level string
	var check bool
	cmd := &cobra.Command{
		Use:   "boostd --config FILE",
		Short: "Run an agent that carries TCP connections over long paths",
		Long:  aboutBoostd,
		Example: `  scaffold boostd --config /etc/scaffold/boostd.yaml
  scaffold boostd key /var/lib/scaffold/boost.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := obs.NewLogger(cmd.ErrOrStderr(), format, level)
			if err != nil {
				return exit.Fail(exit.Usage, "", err)
			}
			if boostd.IsWorker() {
				return boostd.Work(cmd.Context(), log)
			}
			s, err := boostd.Read(file)
			if err != nil {
				return exit.Fail(exit.Usage, "`scaffold boostd --help`, and examples/boost/boostd.yaml", err)
			}
			if check {
				return nil
			}
			s.BPFFS = bpffs
			replace := make(chan struct{})
			defer relay(cmd.Context(), replace, syscall.SIGUSR2)()
			return boostd.Run(cmd.Context(), s, log, boostd.Manager{Ready: func() { obs.TellManager("READY=1") }, Replace: replace})
		},
	}
	set := cmd.Flags()
	set.StringVar(&file, "config", "", "YAML file of what the agent is to do, as examples/boost/boostd.yaml")
	set.StringVar(&bpffs, "bpffs", "", "BPF file system for pins (default /run/scaffold/bpf, mounted if need be)")
	set.BoolVar(&check, "check", false, "say what is wrong with the file, and do nothing else")
	set.StringVar(&format, "log-format", "text", "text or json")
	set.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	cmd.MarkFlagRequired("config")
	cmd.MarkFlagFilename("config", "yaml", "yml")
	cmd.AddCommand(boostdKey())
	return cmd
}

// relay passes on that a signal came, until the function is called that it returns.
func relay(ctx context.Context, to chan<- struct{}, s os.Signal) (end func()) {
	came := make(chan os.Signal, 1)
	signal.Notify(came, s)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-came:
			}
			select {
			case to <- struct{}{}:
			case <-ctx.Done():
			}
		}
	}()
	return func() { signal.Stop(came); cancel() }
}

func boostdKey() *cobra.Command {
	return &cobra.Command{
		Use:     "key FILE",
		Short:   "Print an agent's public key; make the key where there is none",
		Example: `  scaffold boostd key /var/lib/scaffold/boost.key`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, _, err := boostd.Key(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), boostd.Public(key))
			return err
		},
	}
}
