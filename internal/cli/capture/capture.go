package capture

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"scaffold.dev/scaffold/emu/pcap"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labcmd"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/packet/capture"
	"scaffold.dev/scaffold/sid"
)

const (
	snap     = 1 << 18         // bytes of a packet that are kept: all
	askNames = 2 * time.Second // between questions for the hosts' places
)

// captureFlags are capture's flags as they are typed.
type captureFlags struct {
	*remote.HostDaemons
	path, names string
	count       int
}

// Command is `scaffold capture`.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "capture SERVICE",
		Short: "Show a service's packets on the wire, with names beside addresses",
		Long: `Capture prints the packets of a service's flows as this host's uplinks send and receive them, until it is
interrupted: first packets on their way to an instance, all that follows, and the messages by which the two hosts
move a flow. On the wire a flow's packets carry locators and socketIDs; capture follows them from the first packet
on, also when an end moves, and says which host and service they belong to. Flows that were there before are known
from the host's daemon.

With -w the packets go into a file for Wireshark and tcpdump, each beginning with its IP header; --names writes
what each address is called, in the form of /etc/hosts, which Wireshark reads ("tshark -r FILE -H NAMES").`,
		Example: `  sudo scaffold capture web
  sudo scaffold capture web -w web.pcap --names web.hosts
  sudo scaffold capture web --lab two --host c1 -n 20`,
		Args: cobra.ExactArgs(1),
	}
	f := &captureFlags{HostDaemons: &remote.HostDaemons{Admin: remote.AddAdmin(cmd)}}
	set := cmd.Flags()
	set.StringVar(&f.Host, "host", "", "only this host of the lab")
	set.StringVarP(&f.path, "write", "w", "", "write packets to this file instead of printing them, - for the standard output")
	set.StringVar(&f.names, "names", "", "at the end write what each address is called to this file")
	set.IntVarP(&f.count, "count", "n", 0, "end after so many packets")
	command.Exclusive(command.Plain(cmd), "api host")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.capture(cmd, args[0]) }
	return cmd
}

func (f *captureFlags) capture(cmd *cobra.Command, service string) error {
	if f.count < 0 {
		return exit.Failf(exit.Usage, "without -n it goes on until Ctrl-C", "-n %d: want how many packets, from 1 up", f.count)
	}
	w, err := f.prepare(cmd, service)
	if err != nil {
		return err
	}
	nodes, err := f.Hosts(f.Host)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	w.done = cancel
	out, finish, err := f.output(cmd, w, len(nodes) > 1)
	if err != nil {
		return err
	}
	w.write = out
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { w.rename(ctx); return nil })
	for _, node := range nodes {
		in, err := f.place(node)
		if err == nil {
			err = w.open(ctx, group, node, in)
		}
		if err != nil {
			cancel()
			return errors.Join(err, group.Wait(), finish())
		}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "watching %s at %s; Ctrl-C ends it\n", w.names.Service, command.Count(uint32(len(nodes)), "host"))
	err = errors.Join(group.Wait(), finish(), w.save(f.names))
	if w.lost > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s faster than they could be read, and missing\n", command.Counts(w.lost, "packet came", "packets came"))
	}
	return err
}

// prepare asks the controller who the service is.
func (f *captureFlags) prepare(cmd *cobra.Command, service string) (*watch, error) {
	client, endpoint, err := f.DialAdmin()
	if err != nil {
		return nil, err
	}
	status, err := remote.Ask(cmd.Context(), client.GetStatus, &apiv1.GetStatusRequest{}, endpoint, "")
	if err != nil {
		return nil, err
	}
	s, err := remote.Ask(cmd.Context(), client.GetService, &apiv1.GetServiceRequest{Name: service}, endpoint, remote.ListServices)
	if err != nil {
		return nil, err
	}
	w := &watch{admin: client, left: -1, seen: map[netip.Addr]string{}, names: capture.Names{Service: s.Name, Hosts: map[sid.Locator]string{}}}
	if f.count > 0 {
		w.left = f.count
	}
	if w.service, err = sid.ParseServiceID(s.Sid); err != nil {
		return nil, err
	}
	if w.space, err = spaceOf(status.Space); err != nil {
		return nil, err
	}
	return w, w.askHosts(cmd.Context())
}

func spaceOf(s *apiv1.Space) (space sid.Space, err error) {
	var errs [3]error
	space.Services, errs[0] = netip.ParsePrefix(s.GetServices())
	space.AS, errs[1] = netip.ParsePrefix(s.GetAs())
	space.Identities, errs[2] = netip.ParsePrefix(s.GetIdentities())
	return space, errors.Join(errs[:]...)
}

// output is where packets go, as lines or into a file.
func (f *captureFlags) output(cmd *cobra.Command, w *watch, several bool) (write func(string, capture.Packet, capture.Headers, capture.Verdict) error, finish func() error, err error) {
	if f.path == "" {
		return func(at string, p capture.Packet, h capture.Headers, v capture.Verdict) error {
			line := w.names.Line(p, h, v)
			if several {
				line = at + " " + line
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), line)
			return err
		}, func() error { return nil }, nil
	}
	if f.path == "-" {
		f.path = ""
	}
	file, finish, err := labcmd.CaptureFile(cmd, f.path)
	if err != nil {
		return nil, nil, err
	}
	recording, err := pcap.NewWriter(file, pcap.IP)
	return func(_ string, p capture.Packet, _ capture.Headers, _ capture.Verdict) error {
		return recording.Write(p.At, p.Data, p.Length)
	}, finish, err
}

// place runs a function where a host's interfaces are: here, or in the lab's node. A lab's sockets are at
// LAB/NODE/hostd.sock.
func (f *captureFlags) place(node remote.NodeSocket) (func(func() error) error, error) {
	if node.Node == "" {
		return func(do func() error) error { return do() }, nil
	}
	l, err := lab.Open(filepath.Base(filepath.Dir(filepath.Dir(node.Path))), lab.Options{})
	if err != nil {
		return nil, labs.Fail(err)
	}
	return func(do func() error) error { return l.In(node.Node, do) }, nil
}
