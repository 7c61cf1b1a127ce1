package registry

import (
	"io"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/sid"
)

// policy is what the controller says of the web.
func policy() *apiv1.ServicePolicy {
	return &apiv1.ServicePolicy{Name: "web", Ss: webID.SS, Suffix: uint64(webID.Suffix), Policy: &apiv1.Policy{Drain: "shed"}}
}

// First packets come in once it is known who may connect, and no longer than a socket is there; the controller is told each
// step.
func TestAnInstanceFromItsSocketToItsEnd(t *testing.T) {
	w := &world{}
	r := in(t, w, io.Discard)
	r.NewSession()
	r.Flush()
	if len(w.reports) != 0 {
		t.Fatalf("a snapshot before the sockets of before are known: %v", w.reports)
	}
	r.replace(0, nil)
	r.event(0, listens(1))
	r.Flush()
	if g := w.last(t); g.Ready || w.admitted[web] {
		t.Errorf("before its policy is known: %v, admitted %v", g, w.admitted[web])
	}
	r.Policy(policy())
	r.Flush()
	if g := w.last(t); !g.Ready || !w.admitted[web] || w.judged[web] != host.Fit {
		t.Errorf("with its policy: %v, admitted %v, judged %v", g, w.admitted[web], w.judged[web])
	}
	if how := r.Drain(func(id sid.ServiceID) bool { return id == webID }, true); how[webID] != "shed" {
		t.Errorf("drained as %v, want as its policy says", how)
	}
	r.Flush()
	if g := w.last(t); g.Ready || g.Reason != "draining" || w.judged[web] != host.Unfit {
		t.Errorf("drained: %v, judged %v", g, w.judged[web])
	}
	r.event(0, sockets.Event{Kind: sockets.Unregister, Cookie: 1, Why: sockets.Closed})
	r.Flush()
	if g := w.last(t); !g.Gone || w.admitted[web] {
		t.Errorf("without a socket: %v, admitted %v", g, w.admitted[web])
	}
}

// What a daemon before this one let in for a program that has ended since is withdrawn; what still listens serves on.
func TestWhatEndedWithoutADaemonIsWithdrawn(t *testing.T) {
	gone := web
	gone.Port = 81
	w := &world{adopted: true, admitted: map[sid.Triple]bool{web: true, gone: true}}
	r := in(t, w, io.Discard)
	r.Await(2)
	r.replace(0, []sockets.Event{listens(1)})
	if !w.admitted[gone] {
		t.Error("withdrawn before the sockets of a guest are known")
	}
	r.Forget(2)
	if w.admitted[gone] || !w.admitted[web] {
		t.Errorf("admitted %v, want what listens alone", w.admitted)
	}
	if ready, all := r.Count(); ready != 1 || all != 1 {
		t.Errorf("%d of %d ready: what served before serves until a check says otherwise", ready, all)
	}
}

// A registration that the controller refused is told again when there is another permit to show.
func TestWhatWasRefusedIsShownAnew(t *testing.T) {
	w := &world{}
	r := in(t, w, io.Discard)
	r.replace(0, []sockets.Event{listens(1)})
	r.Policy(policy())
	r.Refuse(&apiv1.RegistrationRefused{Registration: &apiv1.Registration{Ss: webID.SS, Suffix: uint64(webID.Suffix), Proto: uint32(sid.TCP), Port: 80}, Reason: "shows no permit"})
	if all := r.List(); len(all) != 1 || !all[0].Refused || w.admitted[web] {
		t.Fatalf("refused, and listed as %v, admitted %v", all, w.admitted[web])
	}
	r.Flush()
	told := len(w.reports)
	r.ShowAnew(func(sid.ServiceID) bool { return false })
	r.Flush()
	if len(w.reports) != told {
		t.Errorf("the same is told again: %v", w.reports[told:])
	}
	r.ShowAnew(func(id sid.ServiceID) bool { return id == webID })
	r.Flush()
	if len(w.reports) != told+1 || r.List()[0].Refused {
		t.Errorf("%d reports after another permit, want one; listed as %v", len(w.reports)-told, r.List())
	}
}

// A user who may not serve gets no first packets. Attacker: a local user.
func TestWhoMayNotServeIsNotAdmitted(t *testing.T) {
	w := &world{}
	r := in(t, w, io.Discard)
	w.users[1] = 65534 // nobody
	r.replace(0, []sockets.Event{listens(1)})
	r.Policy(policy())
	r.Flush()
	if g := w.last(t); g.Ready || g.User != "nobody" || w.admitted[web] {
		t.Errorf("nobody's socket: %v, admitted %v", g, w.admitted[web])
	}
}

// TestWhatStartsWithoutAControllerIsJudgedOnceThereIsOne: attack, a local user starts a server while hostd was away and no
// controller is there, in the place of one that the daemon before had admitted.
func TestWhatStartsWithoutAControllerIsJudgedOnceThereIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		serve          []string
		user           uint32
		away           bool
		admitted, then bool
	}{
		"root's, without a controller":                             {nil, 0, true, true, true},
		"nobody's, without a controller":                           {nil, 65534, true, false, false},
		"nobody's, where any may serve what has no list":           {[]string{"*=any", "web=root"}, 65534, true, false, false},
		"nobody's, where any may serve anything":                   {[]string{"*=any"}, 65534, true, true, true},
		"nobody's, who may serve this, without saying which it is": {[]string{"web=any"}, 65534, true, false, true},
		"root's, whose controller will tell in a moment":           {nil, 0, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{adopted: true, away: c.away, admitted: map[sid.Triple]bool{web: true}}
			r := in(t, w, io.Discard)
			servers, err := ParseServers(c.serve)
			if err != nil {
				t.Fatal(err)
			}
			r.cfg.Servers = servers
			r.replace(0, nil) // its program had ended
			w.users[1] = c.user
			r.event(0, listens(1))
			if w.admitted[web] != c.admitted {
				t.Errorf("admitted %v before there is a policy, want %v", w.admitted[web], c.admitted)
			}
			w.away = false
			r.NewSession()
			r.Flush()
			if g := w.last(t); g.Ready {
				t.Errorf("told as ready before there is a policy: %v", g)
			}
			r.Policy(policy())
			if w.admitted[web] != c.then {
				t.Errorf("admitted %v with a policy, want %v", w.admitted[web], c.then)
			}
		})
	}
}
