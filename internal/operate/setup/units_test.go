package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// settings are the lines of a role's unit.
func settings(r Role) []string {
	return strings.Split(string(text(r.Unit(), "/usr/bin/scaffold")), "\n")
}

// TestUnitsLeaveRoomForOpenFilesAndMaps: a controller has an open file for each stream of a host, and kernels
// before 5.11 count maps as locked memory.
func TestUnitsLeaveRoomForOpenFilesAndMaps(t *testing.T) {
	for _, r := range Roles {
		if !slices.ContainsFunc(settings(r), func(line string) bool { return strings.HasPrefix(line, "LimitNOFILE=") }) {
			t.Errorf("%s has systemd's number of open files", r.Unit())
		}
		if (r == Router || r == Host) && !slices.Contains(settings(r), "LimitMEMLOCK=infinity") {
			t.Errorf("%s has systemd's bound of locked memory", r.Unit())
		}
	}
}

// TestUnitsLetTunnelsOutliveTheDaemon: `scaffold wireguard` is not killed with its daemon, may open the TUN device
// that ProtectClock= would close, and may have a network namespace.
func TestUnitsLetTunnelsOutliveTheDaemon(t *testing.T) {
	for _, r := range []Role{Router, Host} {
		all := settings(r)
		for _, want := range []string{"KillMode=process", "DeviceAllow=/dev/net/tun rw", "RestartKillSignal=SIGUSR1"} {
			if !slices.Contains(all, want) {
				t.Errorf("%s has no %s", r.Unit(), want)
			}
		}
		if slices.Contains(all, "RestrictNamespaces=yes") || slices.Contains(all, "PrivateDevices=yes") {
			t.Errorf("%s keeps WireGuard's process from starting", r.Unit())
		}
	}
}

// TestTheGatewaysUnitLetsItUpgrade: its new process becomes the unit's main one, and an end drains the old one too.
func TestTheGatewaysUnitLetsItUpgrade(t *testing.T) {
	for _, want := range []string{"Type=notify", "NotifyAccess=all", "KillMode=control-group", "TimeoutStopSec=infinity"} {
		if !slices.Contains(settings(Gateway), want) {
			t.Errorf("%s has no %s", Gateway.Unit(), want)
		}
	}
}

// TestTheAgentsUnitOutwaitsALateAddress: it binds one, which a boot may be late to give, and tries until it is there;
// by itself systemd gives up after five starts within ten seconds.
func TestTheAgentsUnitOutwaitsALateAddress(t *testing.T) {
	all := settings(Agent)
	for _, want := range []string{"Wants=network-online.target", "After=network-online.target", "StartLimitIntervalSec=0", "Restart=on-failure", "RestartSec=1"} {
		if !slices.Contains(all, want) {
			t.Errorf("%s has no %s", Agent.Unit(), want)
		}
	}
	if service := slices.Index(all, "[Service]"); slices.Index(all, "StartLimitIntervalSec=0") > service {
		t.Error("StartLimitIntervalSec= is of [Unit]: elsewhere systemd does not read it")
	}
}

// TestSystemdReadsTheUnits: systemd-analyze, where it is, has nothing to say about them.
func TestSystemdReadsTheUnits(t *testing.T) {
	analyze := nstest.Program(t, "systemd-analyze", "systemd")
	dir := t.TempDir()
	var paths []string
	for _, r := range Roles {
		for _, f := range common(r) {
			if !strings.HasPrefix(f.packaged, "/lib/systemd/") {
				continue
			}
			path := filepath.Join(dir, f.name)
			if err := os.WriteFile(path, text(f.name, "/bin/true"), 0o644); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
	}
	out, err := exec.Command(analyze, append([]string{"verify", "--man=no", "--recursive-errors=no"}, paths...)...).CombinedOutput()
	if err != nil || strings.Contains(string(out), dir) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// TestDaemonsSayWhenTheyAreReady: a command that starts one waits for that, and does not ask.
func TestDaemonsSayWhenTheyAreReady(t *testing.T) {
	for _, r := range Roles {
		if !slices.Contains(settings(r), "Type=notify") {
			t.Errorf("%s has no Type=notify", r.Unit())
		}
	}
}

// TestTheControllerHasNoRights: it is no root, has no capability, and is not in the group whose members speak to the
// daemons of a host or router.
func TestTheControllerHasNoRights(t *testing.T) {
	all := settings(Controller)
	for _, want := range []string{"User=scaffold", "Group=scaffold-admin", "CapabilityBoundingSet=", "AmbientCapabilities=", "NoNewPrivileges=yes"} {
		if !slices.Contains(all, want) {
			t.Errorf("%s has no %s", Controller.Unit(), want)
		}
	}
	for _, line := range all {
		if strings.HasPrefix(line, "SupplementaryGroups=") {
			t.Errorf("%s has %s", Controller.Unit(), line)
		}
	}
}
