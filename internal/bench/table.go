package bench

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"scaffold.dev/scaffold/internal/bpf/router"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// A TableSize is how much Table fills.
type TableSize struct{ Services, PerService, Changes, Packets int }

// Table fills a service router's kernel tables with services of perService instances each and
// measures what an instance takes, what one change costs and what the first packet of a flow costs, beside
// tables of fewer services.
func Table(size TableSize) (Report, error) {
	var rep Report
	var base tableCost
	for _, services := range []int{1, 1000, size.Services} {
		if services > size.Services {
			continue
		}
		cost, err := fill(services, size)
		if err != nil {
			return rep, err
		}
		name := fmt.Sprintf("%d services x %d", services, size.PerService)
		rep.Rows = append(rep.Rows, NewRow(name+": one change of an instance", "us", "", "", cost.changes),
			NewRow(name+": first packet of a flow, in the program", "ns", "", "", cost.packets))
		if services == 1 {
			base = cost
			continue
		}
		rep.Rows = append(rep.Rows,
			NewRow(name+": change / that in a table of one service", "ratio", "<= 2", "1 service", []float64{Quantile(cost.changes, 0.5) / Quantile(base.changes, 0.5)}),
			NewRow(name+": first packet / that in a table of one service", "ratio", "<= 2", "1 service", []float64{Quantile(cost.packets, 0.5) / Quantile(base.packets, 0.5)}))
		if services == size.Services {
			rep.Rows = append(rep.Rows, NewRow(name+": kernel memory per instance", "bytes", "", "", []float64{float64(cost.usage.Bytes) / float64(cost.usage.Instances)}))
		}
	}
	rep.Notes = []string{"first packets are test runs of the program, each of another flow to another service drawn at random, so that caches miss as they do in life; the kernel's clock around each run is part of it"}
	return rep, nil
}

// A tableCost is what was measured of one table.
type tableCost struct {
	changes []float64 // us
	packets []float64 // ns
	usage   router.Usage
}

// fill loads a table and measures it.
func fill(services int, size TableSize) (cost tableCost, err error) {
	space := sid.DefaultSpace()
	r, err := router.Open(router.Config{Space: space})
	if err != nil {
		return cost, err
	}
	defer r.Close(false) //nolint:errcheck // unpinned: the kernel frees it
	for i := range services {
		if err := r.SetService(tableService(i), router.Service{Instances: uint32(size.PerService)}); err != nil {
			return cost, err
		}
		if err := r.SetTable(triple(tableService(i)), targets(space, i, size.PerService)); err != nil {
			return cost, err
		}
	}
	if err := r.Commit(1); err != nil {
		return cost, err
	}
	for i := range size.Changes {
		start := time.Now()
		if err := r.SetTable(triple(tableService(i%services)), targets(space, i+1, size.PerService)); err != nil {
			return cost, err
		}
		cost.changes = append(cost.changes, float64(time.Since(start).Nanoseconds())/1e3)
	}
	for range size.Packets {
		_, took, err := r.Program().Benchmark(firstPacket(space, rand.IntN(services)), 1, nil)
		if err != nil {
			return cost, err
		}
		cost.packets = append(cost.packets, float64(took.Nanoseconds()))
	}
	cost.usage, err = r.Usage()
	return cost, err
}

func tableService(i int) sid.ServiceID {
	return sid.ServiceID{SS: 1, Suffix: sid.Suffix(sid.ReservedSuffixes + i)}
}

// firstPacket is the frame of a SYN to a service. Nothing of the router's looks at its checksum.
func firstPacket(space sid.Space, service int) []byte {
	b := make([]byte, ethernet, ethernet+60)
	binary.BigEndian.PutUint16(b[12:], 0x86dd)
	ip := make([]byte, 60)
	ip[0], ip[5], ip[6], ip[7] = 6<<4, 20, uint8(sid.TCP), 64
	src, dst := space.Locator(0x201).Addr(rand.Uint64()|1<<63).As16(), space.ServiceAddr(tableService(service)).As16()
	copy(ip[8:], src[:])
	copy(ip[24:], dst[:])
	binary.BigEndian.PutUint16(ip[40:], uint16(1024+rand.IntN(60000)))
	binary.BigEndian.PutUint16(ip[42:], triple(tableService(0)).Port)
	ip[52], ip[53] = 5<<4, 0x02
	return append(b, ip...)
}

// ethernet is the length of a frame's header.
const ethernet = 14

func triple(id sid.ServiceID) sid.Triple { return sid.Triple{Service: id, Proto: sid.TCP, Port: 80} }

func targets(space sid.Space, from, n int) []resolve.Target {
	ts := make([]resolve.Target, n)
	for i := range ts {
		ts[i] = resolve.Target{Locator: space.Locator(uint16(256 + (from*n+i)%60000)), Weight: 100}
	}
	return ts
}
