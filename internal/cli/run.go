package cli

import (
	"cmp"
	"context"
	"errors"
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
	"scaffold.dev/scaffold/internal/hostd"
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

func runCommand() *cobra.Command {
	var service, socket, permitFile string
	bye := &farewell{drained: make(chan os.Signal, 1)}
	cmd := &cobra.Command{
		Use:   "run --service NAME -- PROGRAM [ARGS]",
		Short: "Run a program whose wildcard listeners serve a service",
		Long:  aboutRun,
		Example: `  scaffold run --service web -- nginx -g 'daemon off;'
  scaffold run --service shell -- /usr/sbin/sshd -D
  scaffold run --service web --permit s1.permit -- nginx -g 'daemon off;'
  scaffold run --service web --drain wait --drain-limit 2m -- nginx -g 'daemon off;'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFarewell(bye.mode); err != nil {
				return err
			}
			path, err := exec.LookPath(args[0])
			if err != nil {
				return fail(ExitNotFound, "", err)
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
			child.Stdin, child.Stdout, child.Stderr = cmd.InOrStdin(), bare(cmd.OutOrStdout()), cmd.ErrOrStderr()
			bye.service, bye.endpoint, bye.w = service, hostEndpoint(socket), cmd.ErrOrStderr()
			return runServing(child, bye, to)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&service, "service", "", "name of the service")
	cmd.Flags().StringVar(&socket, "socket", "", "Unix socket of this host's daemon (default: $"+apiVariable+", else "+hostd.DefaultSocket+")")
	cmd.Flags().StringVar(&permitFile, "permit", "", "file with a permit to serve, as service delegate makes it; a new one in its place counts without a restart")
	cmd.Flags().StringVar(&bye.mode, "drain", "", "what becomes of live flows at SIGTERM: wait, shed, or none: the signal goes to the program at once (default: as the service's policy says)")
	cmd.Flags().DurationVar(&bye.limit, "drain-limit", 10*time.Second, "how long flows are waited for at most")
	cmd.MarkFlagRequired("service")
	return cmd
}

func checkFarewell(mode string) error {
	if mode == "none" {
		return nil
	}
	return checkMode(mode)
}

// hostEndpoint is the API of this host's daemon. $SCAFFOLD_API names it for the programs of a lab's host.
func hostEndpoint(socket string) string {
	if socket != "" {
		return "unix:" + socket
	}
	return cmp.Or(os.Getenv(apiVariable), "unix:"+hostd.DefaultSocket)
}

// serviceAddress asks the host's daemon, which asks the network.
func serviceAddress(ctx context.Context, socket, service string) (netip.Addr, error) {
	client, base, err := api.Dial(hostEndpoint(socket))
	if err != nil {
		return netip.Addr{}, fail(ExitUsage, "", err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	s, err := apiv1connect.NewAdminClient(client, base).GetService(ctx, connect.NewRequest(&apiv1.GetServiceRequest{Name: service}))
	if connect.CodeOf(err) == connect.CodeNotFound {
		return netip.Addr{}, failf(ExitNotFound, "scaffold service create "+service, "there is no service %q", service)
	}
	if err != nil {
		return netip.Addr{}, fail(ExitUnreachable, "does hostd run here? `scaffold run --socket` names its socket", err)
	}
	addr, err := netip.ParseAddr(s.Msg.Address)
	return addr, fail(ExitFailed, "", err)
}

// runServing runs the program to its end in a cgroup whose wildcard binds become those of the address.
func runServing(child *exec.Cmd, bye *farewell, to netip.Addr) error {
	group, err := sockets.NewCgroup("scaffold-run")
	if err != nil {
		return fail(ExitMissing, "scaffold run needs root and cgroup v2", err)
	}
	defer group.Remove()
	hook, err := sockets.RewriteBind(group.Path(), to)
	if err != nil {
		return fail(ExitMissing, "scaffold run needs root", err)
	}
	defer hook.Close()
	child.Env = append(os.Environ(), "SCAFFOLD_SERVICE="+bye.service, "SCAFFOLD_SERVICE_ADDRESS="+to.String())
	child.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: group.FD()}
	return supervise(child, group, bye)
}

// supervise passes signals on until the program ends, or, where it goes on in the background, until no
// process of it is left.
func supervise(child *exec.Cmd, group *sockets.Cgroup, bye *farewell) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		return fail(ExitFailed, "", err)
	}
	defer bye.done()
	done := make(chan error, 1)
	go func() { done <- child.Wait() }()
	if err := bye.pass(signals, func(s syscall.Signal) { child.Process.Signal(s) }, done); err != nil {
		return programError(err)
	}
	go func() { done <- group.Wait() }()
	return bye.pass(signals, group.Signal, done)
}

// pass passes signals to a receiver until done; the first that asks for an end only after the drain.
func (f *farewell) pass(signals <-chan os.Signal, to func(syscall.Signal), done <-chan error) error {
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
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return programExit(128 + int(status.Signal()))
	}
	return programExit(exit.ExitCode())
}
