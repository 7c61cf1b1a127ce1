package demo

import (
	"strings"
	"testing"
	"time"
)

func TestCurlOutputBecomesRequests(t *testing.T) {
	out := "hello from s1\n#200 0.001200 \n#000 0.020000 Connection reset by peer\ns2\n#200 0.5 transfer closed with 3 bytes remaining to read\nnot found\n#404 0.001 \ns3\n#2"
	r := NewRequests(0)
	parseCurl(strings.NewReader(out), r.Add)
	r.Close()
	got := r.Since(0)
	if len(got) != 4 {
		t.Fatalf("%d requests of %q, want 4: %+v", len(got), out, got)
	}
	if got[0].Server != "s1" || got[0].Err != "" || got[0].End.Sub(got[0].Start) != 1200*time.Microsecond {
		t.Errorf("answered request: %+v", got[0])
	}
	for i, want := range []string{"reset", "closed", "404"} {
		if !strings.Contains(got[i+1].Err, want) {
			t.Errorf("request %d: error %q, want one about %q", i+1, got[i+1].Err, want)
		}
	}
	if tally := Count(got); len(tally.Failed) != 3 || tally.ByServer["s1"] != 1 {
		t.Errorf("tally %+v", tally)
	}
}

func TestAwaitEndsWithTheLoad(t *testing.T) {
	r := NewRequests(0)
	go func() { r.Add(Request{Server: "s1"}); r.Close() }()
	if _, ok := r.Await(0, time.Minute, func(q Request) bool { return q.Server == "s2" }); ok {
		t.Error("found a request that was never made")
	}
	if q, ok := r.Await(0, time.Minute, func(q Request) bool { return q.Server == "s1" }); !ok || q.Server != "s1" {
		t.Errorf("missed the request: %+v, %v", q, ok)
	}
}

func TestALineThatIsReadLateIsNoRequestThatBeganLate(t *testing.T) {
	const pause = 100 * time.Millisecond
	began := time.Unix(1000, 0)
	r := NewRequests(pause)
	late := func(client, nth int, by, took time.Duration) {
		at := began.Add(time.Duration(nth)*pause + by)
		r.Add(Request{client: client, Start: at, End: at.Add(took)})
	}
	late(1, 0, 30*time.Millisecond, time.Millisecond)
	late(2, 0, 0, 130*time.Millisecond) // its next one begins when it has ended
	late(1, 1, 50*time.Millisecond, time.Millisecond)
	late(2, 1, 30*time.Millisecond, time.Millisecond)
	late(1, 2, 2*time.Millisecond, time.Millisecond)
	want := map[int][]time.Duration{1: {2 * time.Millisecond, 102 * time.Millisecond, 202 * time.Millisecond}, 2: {0, 130 * time.Millisecond}}
	for _, q := range r.Since(0) {
		if at := q.Start.Sub(began); at != want[q.client][0] {
			t.Errorf("client %d began at %v, want %v", q.client, at, want[q.client][0])
		}
		want[q.client] = want[q.client][1:]
	}
	if q := r.Since(4); q[0].Start.Sub(began) != 202*time.Millisecond {
		t.Errorf("the last one began at %v", q[0].Start.Sub(began))
	}
}
