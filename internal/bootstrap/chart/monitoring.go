package chart

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
)

//go:embed files
var files embed.FS

// extraFiles returns the files of the chart that `xpkg bootstrap` does not print: objects of the Prometheus operator,
// the dashboard, and the notes that Helm shows after an install. The alert rules and the dashboard contain template
// expressions of Prometheus and Grafana, so their text is read from files that Helm does not render.
func extraFiles() (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, as := range map[string]string{
		"files/servicemonitor.yaml": "templates/servicemonitor.yaml", "files/NOTES.txt": "templates/NOTES.txt",
		"files/alerts.yaml": "monitoring/alerts.yaml",
	} {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(as, ".yaml") {
			raw = append([]byte(generated), raw...)
		}
		out[as] = raw
	}
	board, err := json.MarshalIndent(dashboard(), "", "  ")
	if err != nil {
		return nil, err
	}
	out["monitoring/dashboard.json"] = append(board, '\n')
	out["templates/prometheusrule.yaml"] = []byte(generated + prometheusRule)
	out["templates/dashboard.yaml"] = []byte(generated + dashboardConfigMap)
	return out, nil
}

const prometheusRule = `{{- if ((.Values.metrics).prometheusRule).enabled }}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  labels:
    app.kubernetes.io/component: package-manager
    app.kubernetes.io/name: xpkg
    {{- with .Values.metrics.prometheusRule.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  name: xpkg
  namespace: {{ .Release.Namespace }}
spec:
  {{- .Files.Get "monitoring/alerts.yaml" | nindent 2 }}
{{- end }}
`

const dashboardConfigMap = `{{- if ((.Values.metrics).dashboard).enabled }}
apiVersion: v1
kind: ConfigMap
metadata:
  labels:
    app.kubernetes.io/component: package-manager
    app.kubernetes.io/name: xpkg
    {{- toYaml .Values.metrics.dashboard.labels | nindent 4 }}
  name: xpkg-dashboard
  namespace: {{ .Release.Namespace }}
data:
  xpkg.json: |-
    {{- .Files.Get "monitoring/dashboard.json" | nindent 4 }}
{{- end }}
`

// panel is a graph or a number of the dashboard.
type panel struct{ title, kind, expr, legend string }

// panels are the panels of the dashboard, two in a row.
func panels() []panel {
	return []panel{
		{"Packages", "stat", "count(xpkg_package_info)", ""},
		{"Packages that are not ready", "stat", "count(xpkg_package_ready == 0) or vector(0)", ""},
		{"Packages that wait for a user", "table", "xpkg_package_stalled == 1", ""},
		{"Packages and versions", "table", "xpkg_package_info", ""},
		{"Kinds of providers", "timeseries", "xpkg_provider_kinds", "{{package}} {{state}}"},
		{"Failures by code", "timeseries", "sum by (code) (rate(xpkg_failures_total[5m]))", "{{code}}"},
		{"Writes of objects by action", "timeseries", "sum by (action) (rate(xpkg_object_writes_total[5m]))", "{{action}}"},
		{"Reconciliations", "timeseries", "sum by (controller) (rate(controller_runtime_reconcile_total[5m]))", "{{controller}}"},
		{"Memory of the manager", "timeseries", `process_resident_memory_bytes{job=~".*xpkg.*"}`, "{{pod}}"},
	}
}

// dashboard returns the dashboard in the format of Grafana.
func dashboard() map[string]any {
	const width, height = 12, 8
	source := map[string]any{"type": "prometheus", "uid": "${datasource}"}
	var boxes []any
	for i, p := range panels() {
		target := map[string]any{"refId": "A", "datasource": source, "expr": p.expr, "legendFormat": p.legend}
		if p.kind == "table" {
			target["format"], target["instant"] = "table", true
		}
		boxes = append(boxes, map[string]any{
			"id": i + 1, "title": p.title, "type": p.kind, "datasource": source, "targets": []any{target},
			"gridPos": map[string]int{"x": i % 2 * width, "y": i / 2 * height, "w": width, "h": height},
		})
	}
	return map[string]any{
		"title": "xpkg", "uid": "xpkg-packages", "schemaVersion": 39, "tags": []string{"xpkg", "crossplane"}, "refresh": "1m",
		"time": map[string]string{"from": "now-6h", "to": "now"},
		"templating": map[string]any{"list": []any{map[string]any{
			"name": "datasource", "type": "datasource", "query": "prometheus",
		}}},
		"panels": boxes,
	}
}

// Expressions returns the PromQL expressions of the dashboard.
func Expressions() []string {
	var out []string
	for _, p := range panels() {
		out = append(out, p.expr)
	}
	return out
}

// merge adds files to others, and returns an error for a file in both.
func merge(all, more map[string][]byte) error {
	for name, content := range more {
		if all[name] != nil {
			return fmt.Errorf("two files are %s", name)
		}
		all[name] = content
	}
	return nil
}
