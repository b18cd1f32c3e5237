// Package alerts checks the alert rules and the dashboard of the chart with the parsers of Prometheus. It is a module
// of its own, so that xpkg does not depend on Prometheus.
package alerts

import (
	"encoding/json"
	"log/slog"
	"os"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const folder = "../../charts/xpkg/monitoring/"

// TestPrometheusAcceptsTheAlertRules proves that Prometheus loads the alert rules.
func TestPrometheusAcceptsTheAlertRules(t *testing.T) {
	raw, err := os.ReadFile(folder + "alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(
		raw, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler),
	)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	rules := 0
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if rules++; r.Annotations["summary"] == "" || r.Labels["severity"] == "" || r.For == 0 {
				t.Errorf("%s has no summary, severity or duration", r.Alert)
			}
		}
	}
	if rules < 5 {
		t.Errorf("%d rules were found", rules)
	}
}

// TestPrometheusAcceptsTheDashboard proves that the expressions of the dashboard are PromQL.
func TestPrometheusAcceptsTheDashboard(t *testing.T) {
	raw, err := os.ReadFile(folder + "dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(target.Expr); err != nil {
				t.Errorf("%s: %v", p.Title, err)
			}
		}
	}
	if len(board.Panels) < 5 {
		t.Errorf("%d panels were found", len(board.Panels))
	}
}
