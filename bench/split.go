package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"scaffold.dev/scaffold/internal/lab/split"
)

// Split sends flows to instances of the given weights and judges the counts by chi-square.
func Split(ctx context.Context, r *Rig, service string, flows int) (Report, error) {
	var rep Report
	to, err := serviceTarget(ctx, r, service)
	if err != nil {
		return rep, err
	}
	nodes := []string{"s1", "s2", "s3"}
	for _, n := range nodes {
		s, err := serve(r, n, to)
		if err != nil {
			return rep, err
		}
		defer s.Kill() //nolint:errcheck // the lab ends with the bench
	}
	if err := awaitServing(ctx, r, service, 2*len(nodes)); err != nil { // TCP and UDP
		return rep, err
	}
	for _, weights := range [][]float64{{1, 2, 3}, {1, 1000, 0}} {
		for i, n := range nodes {
			if err := r.Act(ctx, "weight %s %s %d", service, n, int(weights[i])); err != nil {
				return rep, err
			}
		}
		if err := awaitWeights(ctx, r, to, nodes, weights); err != nil {
			return rep, err
		}
		for _, network := range []string{"tcp6", "udp6"} {
			row, note, err := splitRow(ctx, r, network, to, flows, nodes, weights)
			if err != nil {
				return rep, err
			}
			rep.Rows, rep.Notes = append(rep.Rows, row), append(rep.Notes, note)
		}
	}
	rep.Notes = append(rep.Notes, "each flow's socketID comes from the client's edge (keyed hash of a fresh random key), so there is no seed to repeat: p is uniform when the split is right")
	return rep, nil
}

func splitRow(ctx context.Context, r *Rig, network, to string, flows int, nodes []string, weights []float64) (Row, string, error) {
	res, err := measure(ctx, r, "c1", "connect", "--network", network, "--to", to, "--count", strconv.Itoa(flows))
	if err != nil {
		return Row{}, "", err
	}
	name := fmt.Sprintf("split %v of %d flows, %s", weights, flows, network[:3])
	if res.Errors > 0 {
		return Row{}, "", fmt.Errorf("%s: %d requests failed", name, res.Errors)
	}
	var counts []int
	var used []float64
	p := 1.0
	for i, n := range nodes {
		if weights[i] == 0 && res.ByID[n] > 0 {
			p = 0
		}
		if weights[i] > 0 {
			counts, used = append(counts, res.ByID[n]), append(used, weights[i])
		}
	}
	p = min(p, split.ChiSquare(counts, used))
	row := NewRow(name, "p", ">= 0.001", "the weights", []float64{p})
	row.N = flows
	return row, fmt.Sprintf("%s: %v", name, counts), nil
}

// awaitWeights asks until no instance of weight 0 answered for a while: the routers hold the weights.
func awaitWeights(ctx context.Context, r *Rig, to string, nodes []string, weights []float64) error {
	if !slices.Contains(weights, 0) {
		_, err := measure(ctx, r, "c1", "connect", "--to", to, "--count", "200")
		return err
	}
	for range 50 {
		res, err := measure(ctx, r, "c1", "connect", "--to", to, "--count", "200")
		if err != nil {
			return err
		}
		quiet := true
		for i, n := range nodes {
			quiet = quiet && (weights[i] > 0 || res.ByID[n] == 0)
		}
		if quiet {
			return nil
		}
	}
	return fmt.Errorf("an instance of weight 0 is still asked after 10,000 requests")
}
