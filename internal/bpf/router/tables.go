package router

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// SetTable makes targets the instances of the triple; port 0 stands for any port, of UDP or, with protocol 0, of whatever protocol. None
// removes the triple: its packets are refused as for a port that nobody serves. Targets that all have
// weight 0 refuse them as "no instance". What is there already costs nothing, a change writes what
// changed, and at no moment does a packet meet half a table.
func (r *Resolver) SetTable(t sid.Triple, targets []resolve.Target) error {
	table, err := resolve.New(targets)
	if err != nil {
		return fmt.Errorf("%v: %w", t, err)
	}
	nodes := table.Nodes()
	if table.Empty() && len(targets) > 0 {
		nodes = []resolve.Node{{}}
	}
	if err := r.change(t, r.tables[t], nodes); err != nil {
		return fmt.Errorf("%v: %w", t, err)
	}
	r.remember(t, nodes)
	return nil
}

// change writes children before the parents that name them, and removes nodes when none does so any more.
func (r *Resolver) change(t sid.Triple, old, new []resolve.Node) error {
	had := make(map[uint64]resolve.Node, len(old))
	for _, n := range old {
		had[n.ID] = n
	}
	for _, n := range slices.Backward(new) {
		was, ok := had[n.ID]
		delete(had, n.ID)
		if ok && was.Shift == n.Shift && slices.Equal(was.Entries, n.Entries) {
			continue
		}
		r.writes++
		if err := r.objs.Tables.Put(nodeKey(t, n.ID), kernelNode(n)); err != nil {
			return full(err)
		}
	}
	for id := range had {
		r.writes++
		if err := r.objs.Tables.Delete(nodeKey(t, id)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
	}
	return nil
}

func (r *Resolver) remember(t sid.Triple, nodes []resolve.Node) {
	r.nodes += len(nodes) - len(r.tables[t])
	if t.Port != 0 {
		r.instances += targetsIn(nodes) - targetsIn(r.tables[t])
	}
	if len(nodes) == 0 {
		delete(r.tables, t)
		return
	}
	r.tables[t] = nodes
}

func targetsIn(nodes []resolve.Node) (n int) {
	for _, node := range nodes {
		for _, e := range node.Entries {
			if !e.Child {
				n++
			}
		}
	}
	return n
}

// Triples lists what has a table. It is a snapshot: the caller may change tables as it goes.
func (r *Resolver) Triples() iter.Seq[sid.Triple] {
	return slices.Values(slices.Collect(maps.Keys(r.tables)))
}

func nodeKey(t sid.Triple, node uint64) resolveTableKey {
	return resolveTableKey{Node: node, Suffix: uint64(t.Service.Suffix), Ss: t.Service.SS, Port: t.Port, Proto: uint8(t.Proto)}
}

func kernelNode(n resolve.Node) resolveTableNode {
	k := resolveTableNode{Count: uint8(len(n.Entries)), Shift: n.Shift}
	for i, e := range n.Entries {
		k.Id[i], k.Weight[i] = e.ID, e.Weight
		if e.Child {
			k.Children |= 1 << i
		}
	}
	return k
}

// readNode is the inverse of nodeKey and kernelNode.
func readNode(key resolveTableKey, k resolveTableNode) (sid.Triple, resolve.Node) {
	t := sid.Triple{Service: sid.ServiceID{SS: key.Ss, Suffix: sid.Suffix(key.Suffix)}, Proto: sid.Proto(key.Proto), Port: key.Port}
	n := resolve.Node{ID: key.Node, Shift: k.Shift}
	for i := range min(int(k.Count), resolve.Fanout) {
		n.Entries = append(n.Entries, resolve.Entry{ID: k.Id[i], Weight: k.Weight[i], Child: k.Children>>i&1 == 1})
	}
	return t, n
}

func full(err error) error {
	if errors.Is(err, ebpf.ErrKeyExist) || !errors.Is(err, errTooBig) {
		return err
	}
	return fmt.Errorf("the router's table is full: remove services that nobody needs, or let hosts serve fewer: %w", err)
}
