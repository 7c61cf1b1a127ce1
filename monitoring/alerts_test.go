package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Causes are what makes each alert fire: series of one sample a minute, in promtool's words.
var Causes = map[string]string{
	"ScaffoldServiceUnserved":  `scaffold_controld_problems{kind="service.unserved",severity="critical"} => 1x60`,
	"ScaffoldServiceWanted":    `scaffold_controld_problems{kind="service.wanted",severity="warning"} => 1x60`,
	"ScaffoldNoLeader":         `scaffold_controld_problems{kind="controller.none",severity="critical"} => 1x60`,
	"ScaffoldControllerAway":   `scaffold_controld_problems{kind="controller.away",severity="warning"} => 1x60`,
	"ScaffoldStoreTrouble":     `scaffold_controld_problems{kind="disk.full",severity="critical"} => 1x60`,
	"ScaffoldStoreSoon":        `scaffold_controld_problems{kind="disk.low",severity="warning"} => 1x60`,
	"ScaffoldRouterAway":       `scaffold_controld_problems{kind="router.away",severity="warning"} => 1x60`,
	"ScaffoldRouterSlow":       `scaffold_controld_problems{kind="router.lags",severity="warning"} => 1x60`,
	"ScaffoldHostDaemonsAway":  `scaffold_controld_problems{kind="host.daemon",severity="warning"} => 1x60`,
	"ScaffoldBoostTrouble":     `scaffold_controld_problems{kind="boost.unserved",severity="warning"} => 1x60`,
	"ScaffoldCredentialEnds":   `scaffold_controld_problems{kind="credential.ends",severity="warning"} => 1x60`,
	"ScaffoldNetworkOpen":      `scaffold_controld_problems{kind="network.open",severity="warning"} => 1x60`,
	"ScaffoldMachinesDiffer":   `scaffold_controld_problems{kind="version.differs",severity="warning"} => 2x60`,
	"ScaffoldDaemonTrouble":    `scaffold_hostd_problems{instance="s1",kind="uplink.none",severity="critical"} => 1x60`,
	"ScaffoldControllerDown":   `up{job="scaffold-controld"} => 0x60`,
	"ScaffoldStateNotSaved":    `scaffold_controld_state_pending => 3x60`,
	"ScaffoldRouterAlone":      `scaffold_routerd_joined{instance="r1"} => 0x60`,
	"ScaffoldRouterLags":       `scaffold_controld_router_lag{router="r1"} => 2x60`,
	"ScaffoldRulesSlow":        `scaffold_controld_rules_apply_seconds_bucket{le="1"} => 0x60; scaffold_controld_rules_apply_seconds_bucket{le="5"} => 0+9x60; scaffold_controld_rules_apply_seconds_bucket{le="+Inf"} => 0+9x60`,
	"ScaffoldHostsSilent":      `scaffold_controld_problems{kind="host.silent",severity="warning"} => 1x60`,
	"ScaffoldHostAlone":        `up{job="scaffold-hostd",instance="s1"} => 0x60`,
	"ScaffoldHostComesAndGoes": `scaffold_hostd_joins_total{instance="s1"} => 0+1x60`,
	"ScaffoldFlowsReset":       `scaffold_hostd_flow_events_total{instance="s1",kind="reset"} => 0+9x60`,
	"ScaffoldMovesSlow":        `scaffold_hostd_move_seconds_bucket{le="1"} => 0x60; scaffold_hostd_move_seconds_bucket{le="5"} => 0+1x60; scaffold_hostd_move_seconds_bucket{le="+Inf"} => 0+1x60`,
	"ScaffoldNamesFail":        `scaffold_hostd_dns_queries_total{instance="s1",rcode="SERVFAIL"} => 0+9x60; scaffold_hostd_dns_queries_total{instance="s1",rcode="NOERROR"} => 0+9x60`,
	"ScaffoldFlowTableFull":    `scaffold_hostd_edge_packets_total{instance="s1",reason="drop_full"} => 0+1x60`,
	"ScaffoldDaemonDeaf":       `scaffold_hostd_edge_packets_total{instance="s1",reason="daemon_away"} => 0+1x60`,
	"ScaffoldRefusals":         `scaffold_routerd_packets_total{instance="r1",fate="refused_no_instance"} => 0+6000x60`,
	"ScaffoldCertificateEnds":  `scaffold_hostd_certificate_left{instance="s1",locator="fd5d:0:1:101::/64"} => 0.2x60`,
	"ScaffoldSwitchGone":       `scaffold_switchd_switch_up{switch="sw1"} => 0x60`,
	"ScaffoldGatewayRefuses":   `scaffold_gateway_refused_total{instance="g1",service="web",reason="no server"} => 0+60x60`,
	"ScaffoldModuleStopped":    `scaffold_switchd_module_stopped{module="m"} => 1x60`,
}

// healthy is a network at rest and at work.
const healthy = `up{job="scaffold-controld"} => 1x60; up{job="scaffold-hostd"} => 1x60; up{job="scaffold-routerd"} => 1x60;
	scaffold_controld_problems{kind="service.unserved",severity="critical"} => 0x60; scaffold_controld_problems{kind="controller.none",severity="critical"} => 0x60; scaffold_controld_state_pending => 0 1 0 1 0x50; scaffold_routerd_joined => 1x60; scaffold_hostd_joined => 1x60;
	scaffold_controld_router_lag{router="r1"} => 0 3 0 2 0 1 0x50; scaffold_controld_problems{kind="host.silent",severity="warning"} => 0 1 0x50;
	scaffold_controld_rules_apply_seconds_bucket{le="0.01"} => 0+9x60; scaffold_controld_rules_apply_seconds_bucket{le="+Inf"} => 0+9x60;
	scaffold_hostd_joins_total => 1x60; scaffold_hostd_flow_events_total{kind="reset"} => 0 1 1 2 2x50; scaffold_hostd_flow_events_total{kind="moved"} => 0+50x60;
	scaffold_hostd_move_seconds_bucket{le="0.02"} => 0+1x60; scaffold_hostd_move_seconds_bucket{le="+Inf"} => 0+1x60;
	scaffold_hostd_dns_queries_total{rcode="SERVFAIL"} => 0 1 1 1x50; scaffold_hostd_dns_queries_total{rcode="NOERROR"} => 0+99x60;
	scaffold_hostd_edge_packets_total{reason="drop_full"} => 0x60; scaffold_routerd_packets_total{fate="refused_no_port"} => 0+60x60;
	scaffold_hostd_certificate_left => 0.8x60; scaffold_switchd_switch_up{switch="sw1"} => 1x60; scaffold_switchd_module_stopped{module="m"} => 0x60`

type ruleTest struct {
	Interval string              `json:"interval"`
	Series   []map[string]string `json:"input_series"`
	Exprs    []map[string]any    `json:"promql_expr_test"`
}

// expect says which alerts fire after 45 minutes of the series.
func expect(series string, firing ...string) ruleTest {
	t := ruleTest{Interval: "1m"}
	for _, s := range strings.Split(series, ";") {
		name, values, _ := strings.Cut(strings.TrimSpace(s), " => ")
		t.Series = append(t.Series, map[string]string{"series": name, "values": values})
	}
	samples := []map[string]any{}
	for _, a := range firing {
		samples = append(samples, map[string]any{"labels": fmt.Sprintf(`{alertname=%q}`, a), "value": 1})
	}
	t.Exprs = []map[string]any{{"expr": `count by (alertname) (ALERTS{alertstate="firing"})`, "eval_time": "45m", "exp_samples": samples}}
	return t
}

func TestEachAlertFiresForItsCauseAndNoneInAHealthyNetwork(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "alerts.yaml"), Alerts, 0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)- alert: (\w+)`).FindAllStringSubmatch(string(Alerts), -1) {
		names = append(names, m[1])
	}
	tests := []ruleTest{expect(healthy)}
	for _, name := range names {
		cause, ok := Causes[name]
		if !ok {
			t.Errorf("%s: no test says what makes it fire", name)
			continue
		}
		if name == "ScaffoldControllerDown" {
			tests = append(tests, expect(cause, name))
			continue
		}
		tests = append(tests, expect(`up{job="scaffold-controld"} => 1x60; `+cause, name))
	}
	for name := range Causes {
		if !slices.Contains(names, name) {
			t.Errorf("%s: there is no such alert", name)
		}
	}
	file, _ := json.Marshal(map[string]any{"rule_files": []string{"alerts.yaml"}, "evaluation_interval": "1m", "tests": tests}) // YAML takes JSON
	if err := os.WriteFile(filepath.Join(dir, "test.yaml"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("promtool", "test", "rules", "test.yaml")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// A panel of the dashboard without a query, or two in one place, is a mistake that Grafana shows to its users only.
func TestDashboardIsWhole(t *testing.T) {
	var d struct {
		UID, Title string
		Panels     []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal(Dashboard, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || len(d.Panels) == 0 {
		t.Fatal("the dashboard has no uid, no title or no panels")
	}
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		if p.Title == "" || ids[p.ID] {
			t.Errorf("panel %d: no title, or its number is another's", p.ID)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s: no query", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies over %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s is wider than the page", p.Title)
		}
	}
}
