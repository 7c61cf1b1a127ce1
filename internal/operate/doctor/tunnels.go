package doctor

import "strings"

// tunnels says by what tunnels of hosts are carried here. Only who has some needs it.
func tunnels(m Machine) []Finding {
	const area = "kernel"
	var found []Finding
	if !hasModule(m, "vxlan") {
		found = append(found, Finding{area, "VXLAN", Note, "not in this kernel", "no tunnels of hosts, of either kind (hostd --uplink tunnel, routerd --tunnel)", "a kernel with CONFIG_VXLAN"})
	} else {
		found = append(found, Finding{Area: area, Name: "VXLAN", State: Good, Found: "in this kernel"})
	}
	misc, _ := m.Read("/proc/misc")
	switch {
	case hasModule(m, "wireguard"):
		return append(found, Finding{Area: area, Name: "WireGuard", State: Good, Found: "in this kernel"})
	case strings.Contains(misc, " tun") || hasModule(m, "tun"):
		return append(found, Finding{area, "WireGuard", Note, "not in this kernel; wireguard-go and /dev/net/tun do it",
			"tunnels of that kind cost more CPU", "modprobe wireguard, or a kernel with CONFIG_WIREGUARD; nothing, if no host has such a tunnel"})
	}
	return append(found, Finding{area, "WireGuard", Note, "not in this kernel, and there is no TUN device", "no tunnels of kind wireguard", "modprobe wireguard, or modprobe tun"})
}

// hasModule reports whether the kernel has a module, loaded, built in or to be loaded.
func hasModule(m Machine, name string) bool {
	release, _ := m.Read("/proc/sys/kernel/osrelease")
	for _, list := range []string{"/proc/modules", "/lib/modules/" + release + "/modules.builtin", "/lib/modules/" + release + "/modules.dep"} {
		text, _ := m.Read(list)
		if strings.Contains("\n"+text, "\n"+name+" ") || strings.Contains(text, "/"+name+".ko") {
			return true
		}
	}
	_, there := m.Read("/sys/module/" + name + "/version") // also of kernels without a list of their parts
	return there
}
