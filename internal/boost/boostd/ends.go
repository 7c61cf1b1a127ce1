package boostd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"scaffold.dev/scaffold/internal/boost/agent"
	"scaffold.dev/scaffold/internal/boost/ends"
	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/trunk"
)

// kernelEnds are the kernel's sockets as an agent wants them.
type kernelEnds struct {
	*ends.Ends
	log    *slog.Logger
	scarce *rate.Sometimes // it is said that there are no descriptors, which is true of each connection for as long as it lasts
}

func newKernelEnds(e *ends.Ends, log *slog.Logger) kernelEnds {
	return kernelEnds{e, log, &rate.Sometimes{Interval: 10 * time.Second}}
}

// Next is the next first packet that the agent can have a connection of; others go on.
func (k kernelEnds) Next(ctx context.Context) (agent.SYN, error) {
	for {
		s, err := k.Ends.Next(ctx)
		if err != nil {
			return nil, err
		}
		why := k.Room()
		if why == nil {
			return kernelSYN{s, k}, nil
		}
		why = errors.Join(why, s.Pass())
		k.scarce.Do(func() {
			k.log.Warn("connections pass unboosted", "why", why, "next", "a larger LimitNOFILE, in the unit of the agent, or fewer connections for it")
		})
	}
}

func (k kernelEnds) Dial(ctx context.Context, client, server netip.AddrPort) (*net.TCPConn, frame.Options, frame.Options, error) {
	c, host, err := k.Ends.Dial(ctx, client, server)
	return c, host, k.own(c, err), k.refusal(err, client, server)
}

// refusal is why there is no connection to a server, as the other agent is told; nil: there is one.
func (k kernelEnds) refusal(err error, from any, server netip.AddrPort) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ends.ErrRefused):
		return &trunk.Refused{Reason: frame.RefusedByHost}
	case errors.Is(err, ends.ErrSilent):
		return &trunk.Refused{Reason: frame.Silence}
	}
	k.log.Warn("no connection to a server", "from", from, "server", server, "why", err)
	return &trunk.Refused{Reason: frame.NoRoom} // not the server's doing: the connection passes
}

func (k kernelEnds) TakeOver(ctx context.Context, m frame.Takeover) (*net.TCPConn, uint64, error) {
	c, received, err := k.Ends.TakeOver(ctx, m)
	switch {
	case err == nil:
		return c, received, nil
	case errors.Is(err, ends.ErrLost):
		k.log.Info("a connection of a lost agent was reset", "client", m.Open.Client, "server", m.Server, "why", err)
		err = &trunk.Refused{Reason: frame.CannotGoOn}
	case errors.Is(err, ends.ErrSilent):
		err = &trunk.Refused{Reason: frame.Silence}
	default:
		k.log.Warn("a connection of a lost agent is not taken over", "client", m.Open.Client, "server", m.Server, "why", err)
		err = &trunk.Refused{Reason: frame.NoRoom}
	}
	return nil, 0, err
}

// own are the options that this end has said of itself, where there is a connection.
func (k kernelEnds) own(c *net.TCPConn, err error) frame.Options {
	if err != nil {
		return frame.Options{}
	}
	return k.Own(c)
}

func (k kernelEnds) Finished(c *net.TCPConn) {
	if ends.IsNamed(c) {
		return
	}
	if err := k.Ends.Finished(c); err != nil { // the end host gets a reset in place of the end
		k.log.Warn("the end of a stream cannot be noted in the kernel: it leaves as a reset", "why", err)
	}
}

func (k kernelEnds) SetLanes(lanes []*agent.Lane) error {
	all := make([]ends.Lane, 0, len(lanes))
	for _, l := range lanes {
		all = append(all, ends.Lane{Number: l.Number, Client: l.Client, Server: l.Server, Port: l.Port, Slot: l.Slot, SlotBits: l.Bits})
	}
	return k.Ends.SetLanes(all)
}

// kernelSYN is a held SYN as an agent wants it.
type kernelSYN struct {
	s *ends.SYN
	k kernelEnds
}

func (k kernelSYN) Lane() uint64           { return k.s.Lane }
func (k kernelSYN) Client() netip.AddrPort { return k.s.Client }
func (k kernelSYN) Server() netip.AddrPort { return k.s.Server }
func (k kernelSYN) Options() frame.Options { return k.s.Options }
func (k kernelSYN) Refuse() error          { return k.s.Refuse() }
func (k kernelSYN) Drop() error            { return k.s.Drop() }
func (k kernelSYN) Pass() error            { return k.s.Pass() }

func (k kernelSYN) Accept(ctx context.Context) (*net.TCPConn, frame.Options, error) {
	c, err := k.s.Accept(ctx)
	return c, k.k.own(c, err), err
}
