package e2e

import (
	"net"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/lab/split"
)

// Flows are chosen by the hash of unpredictable socketIDs: there is no seed, and a fair network fails
// one run in a thousand for each protocol. A split that fails is therefore asked for once more.
func TestFlowsFollowTheWeights(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("weights")
	hosts, weights := []string{"s1", "s2", "s3"}, []float64{1, 2, 3}
	for i, host := range hosts {
		n.serveTCP(host, port(addr, 80))
		n.serveUDP(host, port(addr, 80))
		req := &apiv1.SetWeightRequest{Name: "weights", Host: host, Weight: uint32(weights[i])}
		if _, err := n.admin.SetWeight(t.Context(), connect.NewRequest(req)); err != nil {
			t.Fatal(err)
		}
	}
	n.serving("weights", "tcp", 80, 3)
	n.serving("weights", "udp", 80, 3)
	for _, network := range []string{"tcp6", "udp6"} {
		t.Run(network, func(t *testing.T) {
			n := theNetwork(t)
			var p float64
			var counts []int
			for try := 0; try < 2 && p < 0.001; try++ {
				counts = n.split(network, port(addr, 80), hosts, 3000)
				p = split.ChiSquare(counts, weights)
			}
			t.Logf("%s: %v of %v, p = %.4f", network, counts, hosts, p)
			if p < 0.001 {
				t.Errorf("%s: flows went to %v as %v, weights %v, twice with p < 0.001\nlook at: `scaffold service show weights` and %s", network, hosts, counts, weights, n.look())
			}
		})
	}
}

// split opens flows, one after the other, and counts who answers.
func (n *network) split(network, to string, hosts []string, flows int) []int {
	n.t.Helper()
	seen := map[string]int{}
	n.at("c1").Do(func() {
		for range flows {
			host, err := askOnce(network, to)
			if err != nil {
				n.t.Fatalf("%s to %s after %v: %v\nlook at: %s", network, to, seen, err, n.look())
			}
			seen[host]++
		}
	})
	counts := make([]int, len(hosts))
	for i, host := range hosts {
		counts[i] = seen[host]
	}
	return counts
}

// askOnce opens a flow from the namespace that the thread is in, asks and closes.
func askOnce(network, to string) (host string, err error) {
	c, err := net.Dial(network, to)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return ask(c, "who")
}
