package member

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/trust"
)

// An agent is whoever answers where a member thinks that a controller is.
type agent struct {
	apiv1connect.UnimplementedAgentHandler
	says  *apiv1.RouterOrder
	calls atomic.Int32 // of anything
	heard atomic.Int32 // first words of members
}

// Router is the call by which routers join.
func (a *agent) Router(_ context.Context, s *connect.BidiStream[apiv1.RouterReport, apiv1.RouterOrder]) error {
	if _, err := s.Receive(); err != nil {
		return err
	}
	a.heard.Add(1)
	return s.Send(a.says)
}

// answers runs it until the test ends, by that configuration of TLS; nil: in the clear.
func (a *agent) answers(t *testing.T, by *tls.Config) (endpoint string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint = "http://" + l.Addr().String()
	if by != nil {
		l = tls.NewListener(l, by)
	}
	_, calls := apiv1connect.NewAgentHandler(a)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- api.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a.calls.Add(1)
			calls.ServeHTTP(w, r)
		}), l)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return endpoint
}

func authority(t *testing.T, seed byte, network string) *trust.Authority {
	t.Helper()
	a, err := trust.NewAuthority(append(make([]byte, ed25519.SeedSize-1), seed), network)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// certified is a member's end of TLS, whatever its role: as a server that it has no right to be.
func certified(t *testing.T, by *trust.Authority, role trust.Role, name string) *tls.Config {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	der, err := by.Issue(trust.Identity{Role: role, Name: name, Key: public}, now.Add(-trust.Skew), now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der, by.Certificate()}, PrivateKey: key}}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13}
}

// credentials are those of a router of the network.
func credentials(t *testing.T, by *trust.Authority, name string) *Credentials {
	t.Helper()
	dir := trust.Directory(t.TempDir())
	key, err := dir.Key()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	der, err := by.Issue(trust.Identity{Role: trust.Router, Name: name, Key: key.Public().(ed25519.PublicKey)}, now.Add(-trust.Skew), now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Save(trust.Credential{Certificate: der, Roots: [][]byte{by.Certificate()}}); err != nil {
		t.Fatal(err)
	}
	return &Credentials{Directory: dir}
}

// TestAControllerThatLiesAboutWhoLeadsSendsMembersToNobody: one of several that sends them to somebody unknown, to another
// network's controller or to a member that is none has them knock there, and say nothing: who has no certificate of a
// controller of their network hears no word and gives no order. They go on to the controllers that they know.
func TestAControllerThatLiesAboutWhoLeadsSendsMembersToNobody(t *testing.T) {
	ours, other := authority(t, 1, "ours"), authority(t, 2, "other")
	for name, by := range map[string]*tls.Config{
		"somebody unknown, in the clear":  nil,
		"another network's controller":    trust.NewServer(other, "c3").Config(),
		"a host of the network":           certified(t, ours, trust.Host, "h1"),
		"a router of the network":         certified(t, ours, trust.Router, "r2"),
		"an administrator of the network": certified(t, ours, trust.Admin, "alice"),
	} {
		t.Run(name, func(t *testing.T) {
			unknown := &agent{says: accepted(&apiv1.RouterJoined{NetworkId: "ours", Epoch: 99, Protocol: 1})}
			at := unknown.answers(t, by)
			liar := &agent{says: no(&apiv1.Refused{Standby: true, Leader: []string{at}, Controllers: &apiv1.Controllers{Endpoints: []string{at}}})}
			leads := &agent{says: accepted(&apiv1.RouterJoined{NetworkId: "ours", Epoch: 1, Protocol: 1})}
			all := api.NewControllers([]string{liar.answers(t, trust.NewServer(ours, "c2").Config()), leads.answers(t, trust.NewServer(ours, "c1").Config())})
			own := credentials(t, ours, "r1")
			f := newFake(all)
			f.m.Open = func(ctx context.Context, client *http.Client, base string) Stream[*apiv1.RouterReport, *apiv1.RouterOrder] {
				return apiv1connect.NewAgentClient(client, base).Router(ctx)
			}
			ask := func(context.Context) (*apiv1.RouterReport, error) {
				return &apiv1.RouterReport{Report: &apiv1.RouterReport_Join{Join: &apiv1.RouterJoin{Name: "r1"}}}, nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var went []string
			for joined := false; !joined && ctx.Err() == nil; {
				next, _ := all.Next()
				went = append(went, next)
				client, err := own.Client(next, nil, true)
				if err != nil {
					t.Fatal(err)
				}
				joined, _ = f.m.Hold(ctx, next, client, ask)
				client.CloseIdleConnections()
				if joined && leads.heard.Load() == 0 {
					t.Fatalf("it joined at %s; it went to %v", next, went)
				}
			}
			if liar.heard.Load() != 1 || leads.heard.Load() != 1 {
				t.Errorf("it went to %v: the liar heard it %d times, the one that leads %d times; want once each", went, liar.heard.Load(), leads.heard.Load())
			}
			if unknown.calls.Load() != 0 {
				t.Errorf("%d calls reached %s", unknown.calls.Load(), name)
			}
			if len(went) < 3 || went[1] != at {
				t.Errorf("it went to %v, and not where it was sent: this shows nothing", went)
			}
		})
	}
}
