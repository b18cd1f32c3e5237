package cli_test

import (
	"fmt"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/xpkg-dev/xpkg/internal/function/protocol"
	"github.com/xpkg-dev/xpkg/internal/testing/functiontest"
)

// serveFunction serves at $FUNCTION a function that composes boats and reports what it gets: "functions".
func serveFunction(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: functions")
	}
	ts.Setenv("FUNCTION", functiontest.Serve(scriptTest(ts), fleetFunction))
}

// fleetFunction composes a boat for each of spec.boats if it has an input, and otherwise sets the status.
func fleetFunction(r *protocol.Request) (*protocol.Response, error) {
	out := &protocol.Response{Desired: r.Desired, Context: r.Context}
	if out.Desired == nil {
		out.Desired = &protocol.State{}
	}
	spec, _ := r.Observed.Composite.Resource["spec"].(map[string]any)
	boats, _ := spec["boats"].(float64)
	prefix, ok := r.Input["prefix"].(string)
	switch {
	case ok && boats == 0:
		out.Results = []protocol.Result{{Severity: protocol.SeverityFatal, Message: "no boats"}}
	case ok:
		out.Desired.Resources = map[string]protocol.Resource{}
		for i := range int(boats) {
			boat := map[string]any{"apiVersion": "acme.example.org/v1", "kind": "Boat"}
			if length, ok := spec["length"]; ok {
				boat["spec"] = map[string]any{"length": length}
			}
			out.Desired.Resources[fmt.Sprintf("%s-%d", prefix, i)] = protocol.Resource{Resource: boat, Ready: protocol.ReadyTrue}
		}
		out.Results = []protocol.Result{{Severity: protocol.SeverityNormal, Message: "composed"}}
	default:
		labels := &protocol.MatchLabels{Labels: map[string]string{"sea": "north"}}
		out.Requirements = &protocol.Requirements{Resources: map[string]protocol.Selector{"harbors": {
			APIVersion: "v1", Kind: "ConfigMap", MatchLabels: labels,
		}}, Schemas: map[string]protocol.SchemaSelector{
			"boat": {APIVersion: "acme.example.org/v1", Kind: "Boat"}, "deployment": {APIVersion: "apps/v1", Kind: "Deployment"},
		}}
		status := map[string]any{
			"boats": boats, "context": fmt.Sprint(r.Context), "required": len(r.RequiredResources["harbors"].Items),
		}
		for name, s := range r.RequiredSchemas {
			if s.OpenAPIV3 != nil && r.Context["schemas"] != nil {
				status[name+"Schema"] = s.OpenAPIV3["type"]
			}
		}
		out.Desired.Composite = &protocol.Resource{Resource: map[string]any{"status": status}}
		out.Results = []protocol.Result{{Severity: protocol.SeverityWarning, Message: "shallow water"}}
	}
	return out, nil
}
