package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/draining"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/host/hostd"
	"scaffold.dev/scaffold/internal/linux/cgroups"
)

const aboutRun = `Run starts a program that serves a service without being told its address: whatever it binds to the
IPv6 wildcard, as "listen [::]:80" does, is bound to the service's address instead. Other addresses,
IPv4 and ports that the kernel chooses are left alone.

Signals go to the program, its exit code is run's own. It works by a cgroup that the program and its
children are in and that ends with the program. A program that puts itself into the background and ends
with code 0 is waited for: run ends with its last process, and passes signals to all of them.

SIGTERM and SIGINT drain the service on this host first: no new flow comes, and those that are here are
waited for or shed. When none is left, or --drain-limit is over, the program gets the signal. A second
signal goes to the program at once.`

// Command is `scaffold run`.
func Command() *cobra.Command {
	var service, socket, permitFile string
	end := &shutdown{drained: make(chan os.Signal, 1)}
	cmd := &cobra.Command{
		Use:   "run --service NAME -- PROGRAM [ARGS]",
		Short: "Run a program whose wildcard listeners serve a service",
		Long:  aboutRun,
		Example: `  scaffold run --service web -- nginx -g 'daemon off;'
  scaffold run --service shell -- /usr/sbin/sshd -D
  scaffold run --service web --permit s1.permit -- nginx -g 'daemon off;'
  scaffold run --service web --drain wait --drain-limit 2m -- nginx -g 'daemon off;'`,
		Args: cobra.MatchAll(cobra.MinimumNArgs(1), func(cmd *cobra.Command, _ []string) error {
			if end.mode == "none" && cmd.Flags().Changed("drain-limit") {
				return fmt.Errorf("%s: with --drain none nothing is waited for: leave --drain-limit out", cmd.CommandPath())
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkDrain(end.mode); err != nil {
				return err
			}
			path, err := exec.LookPath(args[0])
			if err != nil {
				return exit.Fail(exit.NotFound, "", err)
			}
			to, err := serviceAddress(cmd.Context(), socket, service)
			if err != nil {
				return err
			}
			if permitFile != "" {
				shown, err := present(cmd.Context(), hostEndpoint(socket), permitFile)
				if err != nil {
					return err
				}
				ctx, cancel := context.WithCancel(cmd.Context())
				defer cancel()
				go keepPresenting(ctx, cmd.ErrOrStderr(), hostEndpoint(socket), permitFile, shown)
			}
			child := exec.Command(path, args[1:]...)
			child.Args[0] = args[0]
			child.Stdin, child.Stdout, child.Stderr = cmd.InOrStdin(), command.Bare(cmd.OutOrStdout()), cmd.ErrOrStderr()
			end.service, end.endpoint, end.w = service, hostEndpoint(socket), cmd.ErrOrStderr()
			return runServing(child, end, to)
		},
	}
	cmd.Flags().SetInterspersed(false)
	command.AllowEmptyArguments(cmd, "the program's arguments")
	cmd.Flags().StringVar(&service, "service", "", "name of the service")
	cmd.Flags().StringVar(&socket, "socket", "", "Unix socket of this host's daemon (default: $"+remote.APIVariable+", else "+hostd.DefaultSocket+")")
	cmd.Flags().StringVar(&permitFile, "permit", "", "file with a permit to serve, as service delegate makes it; a new one in its place counts without a restart")
	cmd.Flags().StringVar(&end.mode, "drain", "", "what becomes of live flows at SIGTERM: wait, shed, or none: the signal goes to the program at once (default: as the service's policy says)")
	cmd.Flags().DurationVar(&end.limit, "drain-limit", 10*time.Second, "how long flows are waited for at most")
	cmd.MarkFlagRequired("service")
	return cmd
}

func checkDrain(mode string) error {
	if mode == "none" {
		return nil
	}
	return draining.CheckMode(mode)
}

// hostEndpoint is the API of this host's daemon. $SCAFFOLD_API names it for the programs of a lab's host.
func hostEndpoint(socket string) string {
	if socket != "" {
		return "unix:" + socket
	}
	return cmp.Or(os.Getenv(remote.APIVariable), "unix:"+hostd.DefaultSocket)
}

// serviceAddress asks the host's daemon, which asks the network.
func serviceAddress(ctx context.Context, socket, service string) (netip.Addr, error) {
	client, base, err := api.Dial(hostEndpoint(socket))
	if err != nil {
		return netip.Addr{}, exit.Fail(exit.Usage, "", err)
	}
	ctx, cancel := context.WithTimeout(ctx, remote.AnswerTime)
	defer cancel()
	s, err := apiv1connect.NewAdminClient(client, base).GetService(ctx, connect.NewRequest(&apiv1.GetServiceRequest{Name: service}))
	if connect.CodeOf(err) == connect.CodeNotFound {
		return netip.Addr{}, exit.Failf(exit.NotFound, "`scaffold service create "+service+"` makes it", "there is no service %q", service)
	}
	if err != nil {
		return netip.Addr{}, remote.Explain(err, hostEndpoint(socket), remote.ListServices)
	}
	addr, err := netip.ParseAddr(s.Msg.Address)
	return addr, exit.Fail(exit.Failed, "", err)
}

// runServing runs the program to its end in a cgroup whose wildcard binds become those of the address.
func runServing(child *exec.Cmd, end *shutdown, to netip.Addr) error {
	group, err := cgroups.NewChild("scaffold-run")
	if err != nil {
		return exit.Fail(exit.Missing, "scaffold run needs root and cgroup v2", err)
	}
	defer group.Close() // the program's own end is what is told
	hook, err := sockets.RewriteBind(string(group.Group), to)
	if err != nil {
		return exit.Fail(exit.Missing, "scaffold run needs root", err)
	}
	defer hook.Close()
	child.Env = append(os.Environ(), "SCAFFOLD_SERVICE="+end.service, "SCAFFOLD_SERVICE_ADDRESS="+to.String())
	child.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: group.FD()}
	return supervise(child, group, end)
}

// supervise passes signals on until the program ends, or, where it goes on in the background, until no
// process of it is left.
func supervise(child *exec.Cmd, group *cgroups.Child, end *shutdown) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		return exit.Fail(exit.Failed, "", err)
	}
	defer end.done()
	done := make(chan error, 1)
	go func() { done <- child.Wait() }()
	if err := end.pass(signals, func(s syscall.Signal) { child.Process.Signal(s) }, done); err != nil {
		return programError(err)
	}
	go func() { done <- group.Wait() }()
	return end.pass(signals, func(s syscall.Signal) { _ = group.Signal(s) }, done) // whoever it does not reach has ended
}

// pass passes signals to a receiver until done; the first that asks for an end only after the drain.
func (f *shutdown) pass(signals <-chan os.Signal, to func(syscall.Signal), done <-chan error) error {
	for {
		select {
		case s := <-signals:
			if !f.holds(s) {
				to(s.(syscall.Signal))
			}
		case s := <-f.drained:
			to(s.(syscall.Signal))
		case err := <-done:
			return err
		}
	}
}

// programError is the program's own end, as a shell would tell it.
func programError(err error) error {
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return err
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exit.Silent(128 + int(status.Signal()))
	}
	return exit.Silent(ended.ExitCode())
}
