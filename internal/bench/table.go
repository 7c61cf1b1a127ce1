package bench

import (
	"fmt"
	"time"

	"scaffold.dev/scaffold/internal/bpf/router"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// Table fills a service router's kernel tables with services of perService instances each and
// measures what an instance takes and what one change costs, beside a table of ten services.
func Table(services, perService, changes int) (Report, error) {
	var rep Report
	small, _, err := fill(10, perService, changes)
	if err != nil {
		return rep, err
	}
	large, usage, err := fill(services, perService, changes)
	if err != nil {
		return rep, err
	}
	rep.Rows = []Row{
		NewRow(fmt.Sprintf("kernel memory per instance, %d services x %d", services, perService), "bytes", "", "",
			[]float64{float64(usage.Bytes) / float64(usage.Instances)}),
		NewRow("one change of an instance", "us", "", "", large),
		NewRow("one change, large table / table of ten services", "ratio", "<= 2", "10 services", []float64{Quantile(large, 0.5) / Quantile(small, 0.5)}),
	}
	rep.Rows[0].N, rep.Rows[2].N = usage.Instances, changes
	return rep, nil
}

// fill loads a table and returns what changes took, in microseconds.
func fill(services, perService, changes int) ([]float64, router.Usage, error) {
	space := sid.DefaultSpace()
	r, err := router.Open(router.Config{Space: space})
	if err != nil {
		return nil, router.Usage{}, err
	}
	defer r.Close(false) //nolint:errcheck // unpinned: the kernel frees it
	for i := range services {
		id := sid.ServiceID{SS: 1, Suffix: sid.Suffix(sid.ReservedSuffixes + i)}
		if err := r.SetService(id, router.Service{Instances: uint32(perService)}); err != nil {
			return nil, router.Usage{}, err
		}
		if err := r.SetTable(triple(id), targets(space, i, perService)); err != nil {
			return nil, router.Usage{}, err
		}
	}
	took := make([]float64, 0, changes)
	for i := range changes {
		id := sid.ServiceID{SS: 1, Suffix: sid.Suffix(sid.ReservedSuffixes + i%services)}
		start := time.Now()
		if err := r.SetTable(triple(id), targets(space, i+1, perService)); err != nil {
			return nil, router.Usage{}, err
		}
		took = append(took, float64(time.Since(start).Nanoseconds())/1e3)
	}
	u, err := r.Usage()
	return took, u, err
}

func triple(id sid.ServiceID) sid.Triple { return sid.Triple{Service: id, Proto: sid.TCP, Port: 80} }

func targets(space sid.Space, from, n int) []resolve.Target {
	ts := make([]resolve.Target, n)
	for i := range ts {
		ts[i] = resolve.Target{Locator: space.Locator(uint16(256 + (from*n+i)%60000)), Weight: 100}
	}
	return ts
}
