package labcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab/frr/mrt"
)

func labUpdatesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "updates FILE --to ADDRESS --as NUMBER",
		Short: "Say recorded routing updates again to a BGP daemon",
		Long: `Updates is run inside a node. It opens a BGP session with the daemon at ADDRESS, which must expect one from the node's
own address, and says the updates and tables of an MRT file (RFC 6396, not compressed) at their recorded times. The
routes lead to the node, and stay until the command is interrupted.`,
		Example: "  scaffold lab exec h1 -- scaffold lab updates updates.mrt --to fd5f:0:1::1 --as 65002 --speed 10",
		Args:    cobra.ExactArgs(1),
	}
	to, as := cmd.Flags().String("to", "", "address of the daemon"), cmd.Flags().Uint32("as", 0, "number of the autonomous system that speaks")
	id := cmd.Flags().String("id", "192.0.2.1", "router identifier")
	four := cmd.Flags().String("next-hop4", "", "next hop of IPv4 routes (default: the node's own address in the session)")
	peer := cmd.Flags().String("peer", "", "recorded peer whose updates are said (default: those of all)")
	speed := cmd.Flags().Float64("speed", 1, "how many times as fast as recorded; 0: as fast as the daemon takes them")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var o mrt.Options
		speaker := mrt.Speaker{AS: *as}
		var daemon netip.Addr
		for _, a := range []struct {
			flag, text string
			into       *netip.Addr
		}{{"to", *to, &daemon}, {"id", *id, &speaker.ID}, {"next-hop4", *four, &speaker.NextHop4}, {"peer", *peer, &o.Peer}} {
			var err error
			if a.text == "" && a.flag != "to" {
				continue
			}
			if *a.into, err = netip.ParseAddr(a.text); err != nil {
				return exit.Failf(exit.Usage, "", "--%s: expected an IP address, found %q", a.flag, a.text)
			}
		}
		o.Speed = *speed
		return labs.Fail(sayUpdates(cmd, args[0], daemon, speaker, o))
	}
	return cmd
}

func sayUpdates(cmd *cobra.Command, path string, daemon netip.Addr, speaker mrt.Speaker, o mrt.Options) error {
	f, err := command.OpenFile(cmd.Context(), path)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := openSession(cmd.Context(), daemon, speaker)
	if err != nil {
		return err
	}
	defer s.Close()
	said, err := s.Replay(cmd.Context(), f, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s said, %d left out, %s of other kinds, %d damaged; at most %v late\n",
		command.Count(uint32(said.Updates), "update"), said.Left, command.Count(uint32(said.Unknown), "record"), said.Bad, said.Late)
	if said.First != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "the first that is damaged: %v\n", said.First)
	}
	select {
	case <-cmd.Context().Done():
		return nil
	case <-s.Done():
		return s.Err()
	}
}

// sessionTime bounds how long a daemon may take until it takes sessions: one that has just started hangs up.
const sessionTime = 15 * time.Second

// openSession tries again while the daemon is not ready.
func openSession(ctx context.Context, daemon netip.Addr, speaker mrt.Speaker) (*mrt.Session, error) {
	limit, cancel := context.WithTimeout(ctx, sessionTime)
	defer cancel()
	for {
		s, err := tryOpen(limit, daemon, speaker)
		if err == nil || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.ECONNREFUSED) {
			return s, err
		}
		select {
		case <-limit.Done():
			return nil, err
		case <-time.After(time.Second):
		}
	}
}

func tryOpen(ctx context.Context, daemon netip.Addr, speaker mrt.Speaker) (*mrt.Session, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", netip.AddrPortFrom(daemon, bgpPort).String())
	if err != nil {
		return nil, err
	}
	own := conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap().WithZone("")
	if own.Is6() {
		speaker.NextHop6 = own
	}
	if !speaker.NextHop4.IsValid() {
		speaker.NextHop4 = own
	}
	return mrt.Open(conn, speaker)
}

// bgpPort is where BGP daemons listen (RFC 4271).
const bgpPort = 179
