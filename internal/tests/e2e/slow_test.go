package e2e

import (
	"bufio"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/lab/split"
)

// Servers that answer one request after another and take a quarter of a second for each, under more requests than they
// keep up with: their queues stand most of the time, and their shares of 60 requests are 45 and 15 all the same. Once they
// were taken for stuck in turns, and had 32 and 28. As in TestFlowsFollowTheWeights, a split that fails is asked for again.
func TestSlowListenersKeepTheirWeights(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("slow")
	hosts, weights := []string{"s1", "s2"}, []float64{3, 1}
	for i, host := range hosts {
		n.serveSlowly(host, port(addr, 80))
		req := &apiv1.SetWeightRequest{Name: "slow", Host: host, Weight: uint32(weights[i])}
		if _, err := n.admin.SetWeight(t.Context(), connect.NewRequest(req)); err != nil {
			t.Fatal(err)
		}
	}
	n.serving("slow", "tcp", 80, 2)
	var p float64
	var counts []int
	for try := 0; try < 2 && p < 0.001; try++ {
		counts = n.crowd(port(addr, 80), hosts, 8, 60)
		p = split.ChiSquare(counts, weights)
	}
	t.Logf("%v of %v, p = %.4f", counts, hosts, p)
	if p < 0.001 {
		t.Errorf("requests went to %v as %v, weights %v, twice with p < 0.001\nlook at: `scaffold explain slow` and %s", hosts, counts, weights, n.look())
		n.showInstanceEvents("slow")
	}
}

// serveSlowly answers the line of each connection with the host's name and that line, one connection after the other, each
// a quarter of a second after it was accepted.
func (n *network) serveSlowly(host, addr string) {
	n.t.Helper()
	l := n.at(host).Listen(n.t, "tcp6", addr)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			time.Sleep(250 * time.Millisecond) // it works
			if line, err := bufio.NewReader(c).ReadString('\n'); err == nil {
				io.WriteString(c, host+" "+line)
			}
			c.Close()
		}
	}()
}

// crowd has so many clients at a time ask, each over new connections one after the other, and counts who answers all
// requests.
func (n *network) crowd(to string, hosts []string, clients, requests int) []int {
	n.t.Helper()
	from := n.at("c1")
	counts := make([]int, len(hosts))
	turns, failed := make(chan struct{}, requests), make(chan error, requests)
	for range requests {
		turns <- struct{}{}
	}
	close(turns)
	var counting sync.Mutex
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range turns {
				var host string
				var err error
				from.Do(func() { host, err = askOnce("tcp6", to) })
				if err != nil {
					failed <- err
					return
				}
				counting.Lock()
				counts[slices.Index(hosts, host)]++
				counting.Unlock()
			}
		})
	}
	all.Wait()
	close(failed)
	for err := range failed {
		n.t.Fatalf("a request to %s after %v: %v\nlook at: %s", to, counts, err, n.look())
	}
	return counts
}

// showInstanceEvents puts what happened to the instances of a service into the test's log.
func (n *network) showInstanceEvents(service string) {
	n.t.Helper()
	explained, err := n.admin.Explain(n.t.Context(), connect.NewRequest(&apiv1.ExplainRequest{Name: service}))
	if err != nil {
		n.t.Log(err)
		return
	}
	for _, e := range explained.Msg.Events {
		n.t.Log(time.UnixMilli(e.UnixMs).Format("15:04:05.000"), e.Kind, e.Text)
	}
}
