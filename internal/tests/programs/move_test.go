package programs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestProgramsGoOnWhileHostsMove has all programs under way at once, takes their hosts from router to router,
// parts the flows of the client over two uplinks, and lets each program come to its end.
func TestProgramsGoOnWhileHostsMove(t *testing.T) {
	j := newJourney(t)
	servers := j.servers()
	riders := j.riders(servers)
	j.goOn("the beginning", riders)
	for _, r := range riders {
		r.stable, r.rides = j.stable(r), 0
	}
	j.moves(riders)
	late := j.apart(riders, riders[0], servers.ssh)
	riders = append(riders, late)
	var names []string
	for _, r := range riders {
		names = append(names, strings.ReplaceAll(r.name, " ", "_"))
		t.Run(r.name, func(t *testing.T) {
			j.unchanged(t, r)
			r.finish(t)
			if t.Logf("was there for %d moves", r.rides); r != late && r.rides < 2 {
				t.Skipf("it came to its end after %d moves: this machine is too slow to say more", r.rides)
			}
		})
	}
	if listed := ridersOfTheTable(t); !slices.Equal(names, listed) {
		t.Errorf("docs/programs.md lists\n%v\ntested are\n%v", listed, names)
	}
}

// moves takes the client and the server to and fro, an even number of times: c1 is at ra again.
func (j *journey) moves(riders []*rider) {
	j.t.Helper()
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"a hard break of the client", func() { j.move("c1", "gap 300ms") }},
		{"a hard break of the server", func() { j.move("s1", "gap 300ms") }},
		{"make before break of the client", func() { j.move("c1", "gap 50ms first") }},
		{"make before break of the server", func() { j.move("s1", "gap 50ms first") }},
		{"a hard break of the client, 20 ms and 1 % loss", func() { j.middle("delay 10ms loss 1%"); j.move("c1", "gap 300ms") }},
		{"a hard break of the server, 20 ms and 1 % loss", func() { j.move("s1", "gap 300ms") }},
		{"make before break of both, 20 ms and 1 % loss", func() { j.move("c1", "first"); j.move("s1", "first") }},
	} {
		step.do()
		j.goOn(step.what, slices.DeleteFunc(slices.Clone(riders), func(r *rider) bool { return r.ended() }))
	}
	j.middle("delay 0s loss 0%")
}

// A fleet is the servers, as far as riders ask for more than their port.
type fleet struct {
	blob           []byte
	www, ssh       string // nginx's directory, the configuration of ssh
	quic, tcp, udp server
}

// servers starts all of them on s1.
func (j *journey) servers() fleet {
	j.t.Helper()
	f := fleet{blob: random(blobSize)}
	j.postgres()
	f.www, f.ssh = j.nginx(f.blob), j.sshd()
	j.redis("s1", j.addr.String(), j.own)
	j.mosquitto("s1")
	f.tcp, f.udp = j.iperf3Server("5201"), j.iperf3Server("5202")
	f.quic = j.own("s1", place(j.t), self, "quic", "serve", j.service.at(443))
	for _, port := range []int{22, 80, 1883, 5201, 5202, 5432, 6379} {
		j.net.serving(j.t, j.name, "tcp", port, 1)
	}
	j.net.serving(j.t, j.name, "udp", 443, 1)
	return f
}

// riders starts all clients on c1; the one that moves alone is the first.
func (j *journey) riders(f fleet) []*rider {
	j.t.Helper()
	return []*rider{
		j.counter(), j.curl(f.www, f.blob), j.login("ssh", f.ssh), j.transaction(), j.mqtt(), j.quic(f.quic), j.scp(f.ssh, f.blob[:24<<20]),
		j.iperf3("tcp", f.tcp, "5201", "-b", "8M"), j.iperf3("udp", f.udp, "5202", "-u", "-b", "4M", "-l", "1200"),
	}
}

// goOn waits until each rider has got on by its step since now, or is at its end.
func (j *journey) goOn(what string, riders []*rider) {
	j.t.Helper()
	at := map[*rider]int64{}
	for _, r := range riders {
		if at[r] = r.count(); r.want != nil {
			r.want(at[r] + 4*r.step) // and on, while hosts move again
		}
	}
	for _, r := range riders {
		nstest.Wait(j.t, j.net.lab.LogPath("c1", "hostd"), func() error {
			if err := r.failed(); err != nil {
				j.t.Fatalf("after %s: %s: %v", what, r.name, err)
			}
			if n := r.count(); n < at[r]+r.step && !r.ended() {
				return fmt.Errorf("after %s: %s has got from %d to %d, want %d more", what, r.name, at[r], n, r.step)
			}
			return nil
		})
		if !r.ended() {
			r.rides++
		}
	}
}

// unchanged fails unless a rider's flows are those that it had at first, and have moved with the host.
func (j *journey) unchanged(t *testing.T, r *rider) {
	t.Helper()
	if r.ended() {
		return
	}
	if got := j.stable(r); !slices.Equal(got, r.stable) || len(got) != r.links {
		t.Errorf("it has the flows %v, at first it had %v, want the same %d", got, r.stable, r.links)
	}
	for id, f := range j.flows(r.pid) {
		if int(f.Moves) != j.hops-r.since {
			t.Errorf("flow %s has moved %d times, its host %d times: %v", id, f.Moves, j.hops-r.since, f)
		}
	}
}
