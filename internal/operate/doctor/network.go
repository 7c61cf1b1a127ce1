package doctor

// network looks at who gets into the network that this machine belongs to.
func network(m Machine) (all []Finding) {
	if m.Network == nil {
		return nil
	}
	n, ok := m.Network()
	if !ok {
		return nil
	}
	for _, h := range n.Exposed {
		all = append(all, Finding{"network", "authentication", Note, h.Found, h.Cost, h.Do})
	}
	if len(all) > 0 {
		return all
	}
	found := "whoever joins needs a key"
	switch n.Trust {
	case "open":
		found = "it is open, and reached from its controller's machine alone"
	case "":
		found = "none gets in, as far as is known on this machine"
	}
	return []Finding{{Area: "network", Name: "authentication", State: Good, Found: found}}
}
