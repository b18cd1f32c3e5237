package check_test

import (
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

const step = "[{step: a, functionRef: {name: f}, credentials: [{name: c, source: Secret, secretRef: {namespace: NAMESPACE, name: admin}}]}]"

// object returns an object of Crossplane with a spec.
func object(apiVersion, kind, spec string) string {
	return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: x}\nspec: " + spec + "\n---\n"
}

func cron(schedule string) string {
	return object("ops.crossplane.io/v1alpha1", "CronOperation",
		`{schedule: "`+schedule+
			`", operationTemplate: {spec: {mode: Pipeline, pipeline: [{step: a, functionRef: {name: f}}]}}}`)
}

// TestConcernsAreWarningsOfAuthorsAndPlans checks what is a concern, and that an install does not report it.
func TestConcernsAreWarningsOfAuthorsAndPlans(t *testing.T) {
	crd := thing("{type: object}", "")
	names := func(names string) string { return strings.Replace(crd, "kind: Thing, plural: things", names, 1) }
	const webhook = "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {path: /convert}}}}\n"
	two := strings.NewReplacer(
		"  versions:\n",
		"  versions:\n  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n",
	).Replace(crd)
	text := strings.Repeat("x", 1<<10)
	composition := func(namespace string) string {
		return object("apiextensions.crossplane.io/v1",
			"Composition", "{compositeTypeRef: {apiVersion: example.org/v1, kind: X}, mode: Pipeline, pipeline: "+
				strings.Replace(step, "NAMESPACE", namespace, 1)+"}")
	}
	for name, c := range map[string]struct{ object, code string }{
		"a plural like that of Crossplane": {
			strings.ReplaceAll(names("kind: Provider, plural: providers"), "things.example.org", "providers.example.org"),
			"HiddenName",
		},
		"a singular like a short name": {names("kind: Thing, plural: things, singular: po"), "HiddenName"},
		"a short name of Kubernetes": {
			names("kind: Thing, plural: things, shortNames: [th, deploy]"), "HiddenName",
		},
		"another short name": {names("kind: Thing, plural: things, shortNames: [th]"), ""},
		"a plural of Kubernetes": {
			strings.ReplaceAll(names("kind: Role, plural: roles"), "things.example.org", "roles.example.org"), "",
		},
		"a webhook for one version":  {crd + webhook, "NeedlessConversion"},
		"a webhook for two versions": {two + webhook, ""},
		"a large default": {
			thing("{type: object, properties: {a: {type: string, default: "+strings.Repeat(text, 98)+"}}}", ""), "LargeObject",
		},
		"a default of 50 kB": {
			thing("{type: object, properties: {a: {type: string, default: "+strings.Repeat(text, 49)+"}}}", ""), "",
		},
		"a large object": {
			thing("{type: object, description: "+strings.Repeat(text, 1100)+"}", ""), "LargeObject",
		},
		"a property with the name default": {
			thing("{type: object, properties: {default: {type: string, description: "+strings.Repeat(text, 200)+"}}}", ""), "",
		},
		"every minute":                   {cron("* * * * *"), "FarReaching"},
		"every two minutes, with a zone": {cron("CRON_TZ=Europe/Berlin */2 * * * *"), "FarReaching"},
		"every minute of ranges":         {cron("0-9,30/5 * * * *"), "FarReaching"},
		"every 20 seconds":               {cron("@every 20s"), "FarReaching"},
		"every five minutes":             {cron("*/5 * * * *"), ""},
		"every hour":                     {cron("@hourly"), ""},
		"two minutes of a day":           {cron("1,2 3 * * *"), ""},
		"every managed resource": {object(
			"apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", `{activate: [a.example.org, "*"]}`,
		), "FarReaching"},
		"the managed resources of a provider": {
			object("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", `{activate: ["*.example.org"]}`),
			"",
		},
		"a Secret of Kubernetes": {composition("kube-system"), "FarReaching"},
		"a Secret of Crossplane": {composition("crossplane-system"), ""},
		"a Secret of Kubernetes for an Operation": {object(
			"ops.crossplane.io/v1alpha1", "Operation",
			"{mode: Pipeline, pipeline: "+strings.Replace(step, "NAMESPACE", "kube-public", 1)+"}",
		), "FarReaching"},
		"a Secret of Kubernetes in a template": {object(
			"ops.crossplane.io/v1alpha1", "WatchOperation",
			"{watch: {apiVersion: v1, kind: Pod}, operationTemplate: {spec: {mode: Pipeline, pipeline: "+
				strings.Replace(step, "NAMESPACE", "kube-system", 1)+"}}}",
		), "FarReaching"},
		"an XRD whose claims have a hidden name": {
			claimedXRD("{plural: claims, kind: Claim, shortNames: [ns]}"), "HiddenName",
		},
		"an XRD whose claims have a name of their own": {claimedXRD("{plural: claims, kind: Claim}"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			stream := completeMeta + c.object
			if !strings.Contains(c.object, "CustomResourceDefinition") {
				stream = strings.Replace(stream, "kind: Provider", "kind: Configuration", 1)
			}
			pkg, err := xpkg.Read([]byte(stream), xpkg.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			found := check.Concerns(pkg.Objects)
			if c.code == "" && len(found) > 0 || c.code != "" && (len(found) != 1 || found[0].Code.Name != c.code) {
				t.Errorf("want %q: %.500v", c.code, found)
			}
			if c.code != "" &&
				!strings.Contains(strings.Join(findings(t, stream, xpkg.PolicyBuild()), "\n"), "warning "+c.code) {
				t.Errorf("the author is not warned")
			}
			if got := strings.Join(findings(t, stream, xpkg.PolicyInstall()), "\n"); c.code != "" &&
				strings.Contains(got, c.code) {
				t.Errorf("an install reports %.500s", got)
			}
		})
	}
}

// claimedXRD returns an XRD with names of claims.
func claimedXRD(claims string) string {
	return strings.Replace(object("apiextensions.crossplane.io/v1", "CompositeResourceDefinition",
		"{group: example.org, names: {plural: xs, kind: X}, claimNames: "+claims+
			", versions: [{name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object}}}]}"), "name: x", "name: xs.example.org", 1)
}
