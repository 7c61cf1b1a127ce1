package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/miekg/dns"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// An attempt is one thing that is tried while parts are away.
type attempt struct {
	what   string
	took   time.Duration // valid after ended
	ended  chan error
	cancel func()
}

// try begins an attempt that ends by itself, by cancel, or with the test.
func (p *pairs) try(what string, do func(ctx context.Context) error) *attempt {
	ctx, cancel := context.WithCancel(context.Background())
	p.running.Add(1)
	p.cancels = append(p.cancels, cancel)
	k := &attempt{what: what, ended: make(chan error, 1), cancel: cancel}
	began := time.Now()
	go func() {
		defer p.running.Done()
		err := do(ctx)
		k.took = time.Since(began)
		k.ended <- err
	}()
	return k
}

// How many flows are begun at a time: enough that each of two servers gets one, but in one of 128 times. Where questions
// have to wait all of them would meet the server that is there in one of 65,536 times: it was one of 16 with four.
const (
	flowsBegun     = 8
	questionsBegun = 16
)

// connect begins TCP connections at the same moment; each has to be answered. Nothing is tried twice.
func (p *pairs) connect(ctx context.Context) error {
	return p.all(flowsBegun, func() error {
		c, err := p.from(ctx, "tcp6", p.to)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = askBy(ctx, c, "first")
		return err
	})
}

// datagrams asks by UDP from new sockets, each with a port that none had before: one that gets the port of a socket that was
// closed within five seconds goes on with its flow, be it to a server that is gone (docs/protocol.md §3.6). What is lost is
// asked again, as programs do.
func (p *pairs) datagrams(ctx context.Context) error {
	return p.all(questionsBegun, func() error {
		c, err := p.dialBy(ctx, &net.Dialer{LocalAddr: &net.UDPAddr{Port: int(20000 + p.asked.Add(1))}}, "udp6", p.to)
		if err != nil {
			return err
		}
		defer c.Close()
		buf := make([]byte, 100)
		for {
			if _, err := io.WriteString(c, "question"); err != nil {
				return err
			}
			c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			_, err := c.Read(buf)
			var late net.Error
			if err == nil || !errors.As(err, &late) || !late.Timeout() || ctx.Err() != nil {
				return err
			}
		}
	})
}

// all does something several times at once.
func (p *pairs) all(times int, do func() error) error {
	errs := make([]error, times)
	var done sync.WaitGroup
	for i := range errs {
		done.Go(func() { errs[i] = do() })
	}
	done.Wait()
	return errors.Join(errs...)
}

// from opens a connection from the client's host.
func (p *pairs) from(ctx context.Context, network string, to netip.AddrPort) (c net.Conn, err error) {
	return p.dialBy(ctx, new(net.Dialer), network, to)
}

func (p *pairs) dialBy(ctx context.Context, by *net.Dialer, network string, to netip.AddrPort) (c net.Conn, err error) {
	p.client.Do(func() { c, err = by.DialContext(ctx, network, to.String()) })
	return c, err
}

// askBy is ask with the deadline of a context.
func askBy(ctx context.Context, c net.Conn, line string) (host string, err error) {
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Now()) })
	defer stop()
	return askOn(c, line)
}

// name asks the name server of the client's host. One that says that it cannot know is asked again where insist.
func (p *pairs) name(ctx context.Context, name string, insist bool) error {
	for {
		rcode, err := p.resolve(ctx, name)
		switch {
		case err == nil && rcode != dns.RcodeServerFailure:
			return nil
		case err == nil:
			err = errors.New(dns.RcodeToString[rcode])
		}
		if !insist || ctx.Err() != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (p *pairs) resolve(ctx context.Context, name string) (rcode int, err error) {
	c, err := p.from(ctx, "udp6", netip.MustParseAddrPort("[::1]:53"))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	in, _, err := (&dns.Client{Timeout: answerTime}).ExchangeWithConnContext(ctx, new(dns.Msg).SetQuestion(name, dns.TypeAAAA), &dns.Conn{Conn: c})
	if err != nil {
		return 0, err
	}
	return in.Rcode, nil
}

// register opens a port of the service at s1 that nobody else serves, and waits until it is one of the service's.
func (p *pairs) register(ctx context.Context, port uint16) error {
	at := netip.AddrPortFrom(p.to.Addr(), port)
	var l net.Listener
	var err error
	p.server.Do(func() { l, err = net.Listen("tcp6", at.String()) })
	if err != nil {
		return err
	}
	defer l.Close()
	client, base, err := api.Dial("unix:" + p.lab.Socket("ctl"))
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	admin := apiv1connect.NewAdminClient(client, base)
	for {
		s, err := admin.GetService(ctx, connect.NewRequest(&apiv1.GetServiceRequest{Name: "pairs"}))
		if err == nil && slices.ContainsFunc(s.Msg.Instances, func(i *apiv1.Instance) bool { return i.Port == uint32(port) && i.State == "serving" }) {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("port %d is not registered: %w", port, cmp.Or(err, ctx.Err()))
		}
		time.Sleep(10 * time.Millisecond)
	}
}
