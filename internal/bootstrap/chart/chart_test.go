package chart_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/bootstrap/chart"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

var (
	root   = filepath.Join("..", "..", "..")
	folder = filepath.Join(root, "charts", "xpkg")
)

func TestTheChartIsUpToDate(t *testing.T) {
	files, err := chart.Files()
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, dir := range chart.Folders() {
		entries, err := os.ReadDir(filepath.Join(folder, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			there = append(there, dir+"/"+e.Name())
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(files)), there); diff != "" {
		t.Fatalf("files of the chart; run make generate (-want +got):\n%s", diff)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s is not up to date: run make generate", name)
		}
	}
}

// The chart refuses the groups that the command refuses.
func TestTheChartRefusesReservedGroups(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(folder, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Properties struct {
			Permissions struct {
				Properties struct {
					PackageGroups struct {
						Items struct {
							Pattern string
							Not     struct{ Enum []string }
						}
					}
				}
			}
		}
	}
	if err := json.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	items := values.Properties.Permissions.Properties.PackageGroups.Items
	if diff := cmp.Diff(rbac.ReservedGroups(), items.Not.Enum); diff != "" {
		t.Errorf("reserved groups (-want +got):\n%s", diff)
	}
	form := regexp.MustCompile(items.Pattern)
	for group, right := range map[string]bool{
		"*": true, "s3.aws.upbound.io": true, "a-b.c": true, "apps": false, "": false, "A.b": false, "*.b": false,
		"a.b/c": false,
	} {
		if form.MatchString(group) != right {
			t.Errorf("%q: want %t", group, right)
		}
	}
}

// version is the version in Chart.yaml.
const version = "v0.1.0-dev"

// With the same wishes the chart renders the objects that the command prints.
func TestTheChartIsWhatBootstrapPrints(t *testing.T) {
	cases := map[string]struct {
		options bootstrap.Options
		values  string
	}{
		"Defaults": {bootstrap.Options{Version: version}, "{}"},
		"CacheThatStays": {
			bootstrap.Options{
				Version: version, Namespace: "packages", Replicas: 1, CacheClaim: "cache", CacheLimit: "20Gi",
				Args: []string{"--poll-interval=5m", "--verbose"},
			},
			`{"replicas": 1, "packageCache": {"pvc": "cache", "limit": "20Gi"}, "args": ["--poll-interval=5m", "--verbose"]}`,
		},
		"PrivateImage": {
			bootstrap.Options{
				Image:            "registry.example.org/xpkg:v2@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
				ImagePullSecrets: []string{"a", "b"},
				NoNetworkPolicy:  true, CacheSize: "8Gi", CacheLimit: "4Gi",
			},
			`{"image": {"repository": "registry.example.org/xpkg", "tag": "v2@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
			  "imagePullSecrets": ["a", "b"], "networkPolicy": {"enabled": false}, "packageCache": {"sizeLimit": "8Gi", "limit": "4Gi"}}`,
		},
		"PackageGroups": {
			bootstrap.Options{
				Version: version, PackageGroups: []string{"b.example.org", "a.example.org"}, PermissionPolicy: "policy",
			},
			`{"permissions": {"packageGroups": ["b.example.org", "a.example.org"], "policy": "policy"}}`,
		},
		"Orphans": {bootstrap.Options{Version: version, RemoveOrphans: true}, `{"dependencyRemoval": "Orphans"}`},
		"NamespacedOrphans": {
			bootstrap.Options{
				Version: version, PackageGroups: []string{"a.example.org"}, PermissionPolicy: "policy", Namespaced: true,
				RemoveOrphans: true,
			},
			`{"permissions": {"packageGroups": ["a.example.org"], "policy": "policy"}, "namespaced": true, "dependencyRemoval": "Orphans"}`,
		},
		"BesideCore": {
			bootstrap.Options{Version: version, CoreAccounts: []types.NamespacedName{{
				Namespace: bootstrap.DefaultNamespace, Name: "crossplane",
			}}},
			`{"besideCore": {"enabled": true}}`,
		},
		"BesideCoreOfAnotherNamespace": {
			bootstrap.Options{Version: version, Namespace: "packages", CoreAccounts: []types.NamespacedName{{
				Namespace: "core", Name: "composer",
			}}},
			`{"besideCore": {"enabled": true, "namespace": "core", "serviceAccount": "composer"}}`,
		},
		"FirstGeneration": {
			bootstrap.Options{Version: version, FirstGeneration: true, Indexes: []string{
				"registry.example.org/index:v1,10",
				"registry.example.org/other@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
			}},
			`{"firstGeneration": true, "indexes": ["registry.example.org/index:v1,10", "registry.example.org/other@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]}`,
		},
		"FirstGenerationAnyPackage": {
			bootstrap.Options{Version: version, FirstGeneration: true, PackageGroups: []string{"*"}},
			`{"firstGeneration": true, "permissions": {"packageGroups": ["*"]}}`,
		},
		"SignedIndexes": {
			bootstrap.Options{
				Version: version, Indexes: []string{"registry.example.org/index:v1"},
				IndexKeys: "-----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----\n",
			},
			`{"indexes": ["registry.example.org/index:v1"], "indexKeys": "-----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----\n"}`,
		},
		"IndexesAndArguments": {
			bootstrap.Options{
				Version: version, Indexes: []string{"registry.example.org/index:v1"}, RemoveOrphans: true,
				Args: []string{"--verbose"},
			},
			`{"indexes": ["registry.example.org/index:v1"], "dependencyRemoval": "Orphans", "args": ["--verbose"]}`,
		},
		"AnyPackage": {
			bootstrap.Options{Version: version, PackageGroups: []string{"a.example.org", "*"}},
			`{"permissions": {"packageGroups": ["a.example.org", "*"]}}`,
		},
		"Namespaced": {
			bootstrap.Options{
				Version: version, PackageGroups: []string{"a.example.org"}, PermissionPolicy: "policy", Namespaced: true,
			},
			`{"permissions": {"packageGroups": ["a.example.org"], "policy": "policy"}, "namespaced": true}`,
		},
		"NamespacedAnyPackage": {
			bootstrap.Options{Version: version, PackageGroups: []string{"*"}, Namespaced: true},
			`{"permissions": {"packageGroups": ["*"]}, "namespaced": true}`,
		},
		"Scheduled": {
			bootstrap.Options{
				Version: version, PriorityClassName: "system-cluster-critical",
				NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
				Tolerations:  []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}},
				Affinity: &corev1.Affinity{
					NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
						NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
							Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"},
						}}}},
					}}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
					corev1.ResourceMemory: resource.MustParse("2Gi"),
				}},
			},
			`{"priorityClassName": "system-cluster-critical", "nodeSelector": {"kubernetes.io/os": "linux"},
			  "tolerations": [{"key": "dedicated", "operator": "Exists"}],
			  "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}},
			  "resources": {"requests": null, "limits": {"memory": "2Gi"}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			namespace := tc.options.Namespace
			if namespace == "" {
				namespace = bootstrap.DefaultNamespace
			}
			values := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(values, []byte(tc.values), 0o600); err != nil {
				t.Fatal(err)
			}
			helm(t, "lint", "--strict", "--namespace", namespace, "-f", values, folder)
			got := parse(t, helm(
				t, "template", "xpkg", folder, "--namespace", namespace, "--kube-version", "v1.31.0", "--include-crds", "-f",
				values,
			))
			if diff := cmp.Diff(printed(t, tc.options), got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the chart differs (-bootstrap +chart):\n%s", diff)
			}
		})
	}
}

// TestValuesAddMonitoringAndSettings proves that the values without a counterpart in the command render what they name.
func TestValuesAddMonitoringAndSettings(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values.yaml")
	content := `{"metrics": {"serviceMonitor": {"enabled": true, "labels": {"release": "prometheus"}}, "prometheusRule": {"enabled": true}, "dashboard": {"enabled": true}},
	  "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn"}}, "podAnnotations": {"team": "ships"}, "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}]}`
	if err := os.WriteFile(values, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	helm(t, "lint", "--strict", "--namespace", "packages", "-f", values, folder)
	got := parse(
		t, helm(t, "template", "xpkg", folder, "--namespace", "packages", "--kube-version", "v1.31.0", "-f", values),
	)
	for key, path := range map[string][]string{
		"ServiceMonitor packages/xpkg":      {"metadata", "labels", "release"},
		"PrometheusRule packages/xpkg":      {"spec", "groups"},
		"ConfigMap packages/xpkg-dashboard": {"data", "xpkg.json"},
		"ServiceAccount packages/xpkg":      {"metadata", "annotations", "eks.amazonaws.com/role-arn"},
		"Deployment packages/xpkg":          {"spec", "template", "metadata", "annotations", "team"},
	} {
		object, _ := got[key].(map[string]any)
		if value, found, err := unstructured.NestedFieldNoCopy(object, path...); !found || err != nil {
			t.Errorf("%s: %v is %v, %v", key, path, value, err)
		}
	}
	deployment, err := json.Marshal(got["Deployment packages/xpkg"])
	if err != nil || !bytes.Contains(deployment, []byte(`{"name":"HTTPS_PROXY","value":"http://proxy:3128"}`)) {
		t.Errorf("the variable is missing: %v", err)
	}
}

// TestValuesOfThePods proves that the fields of the pods can be set: files from volumes, labels, the image, and what a
// platform prescribes.
func TestValuesOfThePods(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	out := string(render(t, folder, `{
		"image": {"tag": "v1", "digest": "`+digest+`", "pullPolicy": "Always"}, "podLabels": {"team": "x", "app.kubernetes.io/name": "other"},
		"extraVolumes": [{"name": "ca", "configMap": {"name": "registry-ca"}}], "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}],
		"podSecurityContext": {"runAsNonRoot": true}, "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
	}`))
	for text, want := range map[string]int{
		`image: "ghcr.io/xpkg-dev/xpkg:v1@` + digest + `"`: 1, "imagePullPolicy: Always\n": 1, "team: x\n": 1,
		"app.kubernetes.io/name: other": 0,
		"name: registry-ca\n":           1, "mountPath: /ca\n": 1, "runAsUser: 65532": 0, "topologyKey: zone\n": 1,
		"topologyKey: kubernetes.io/hostname": 0,
	} {
		if got := strings.Count(out, text); got != want {
			t.Errorf("%q occurs %d times, want %d", text, got, want)
		}
	}
}

// TestValuesReplaceVariablesAndAnnotations proves that each variable and annotation occurs once. Kubernetes cannot
// merge two variables of one name in an upgrade.
func TestValuesReplaceVariablesAndAnnotations(t *testing.T) {
	out := string(render(
		t, folder,
		`{"env": [{"name": "GOMEMLIMIT", "value": "400MiB"}, {"name": "HOME", "value": "/home"}], "podAnnotations": {"prometheus.io/scrape": "false"}}`,
	))
	for text, want := range map[string]int{
		"name: GOMEMLIMIT\n": 1, "name: HOME\n": 1, "value: 400MiB\n": 1, "value: /home\n": 1,
		`prometheus.io/scrape: "false"`: 1, "prometheus.io/scrape:": 1, "prometheus.io/port:": 1,
	} {
		if got := strings.Count(out, text); got != want {
			t.Errorf("%q occurs %d times, want %d", text, got, want)
		}
	}
}

// TestValuesOfAnEarlierChart proves that a release whose values lack those that were added can be upgraded with
// --reuse-values.
func TestValuesOfAnEarlierChart(t *testing.T) {
	render(
		t, folder,
		`{"metrics": null, "serviceAccount": null, "env": null, "podAnnotations": null, "podLabels": null, "extraVolumes": null, "extraVolumeMounts": null, "podSecurityContext": null, "topologySpreadConstraints": null, "indexes": null, "indexKeys": null, "firstGeneration": null}`,
	)
	render(t, folder, `{"metrics": {"serviceMonitor": {"enabled": true}, "prometheusRule": null, "dashboard": null}}`)
}

// TestChartIsADependency proves that another chart can contain this one, with a condition.
func TestChartIsADependency(t *testing.T) {
	parent := t.TempDir()
	if err := os.CopyFS(filepath.Join(parent, "charts", "xpkg"), os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	const metadata = "apiVersion: v2\nname: platform\nversion: 1.0.0\ndependencies:\n- name: xpkg\n  version: '>=0-0'\n  condition: xpkg.enabled\n"
	if err := os.WriteFile(filepath.Join(parent, "Chart.yaml"), []byte(metadata), 0o600); err != nil {
		t.Fatal(err)
	}
	for enabled, want := range map[string]bool{"true": true, "false": false} {
		out := render(t, parent, `{"xpkg": {"enabled": `+enabled+`}}`)
		if got := bytes.Contains(out, []byte("kind: Deployment\n")); got != want {
			t.Errorf("enabled %s: the manager is rendered: %t", enabled, got)
		}
	}
}

// render returns the objects of a chart.
func render(t *testing.T, chart, values string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return helm(t, "template", "xpkg", chart, "--namespace", "packages", "--kube-version", "v1.31.0", "-f", file)
}

// TestMonitoringUsesMetricsThatExist checks the names in the alert rules and the dashboard.
func TestMonitoringUsesMetricsThatExist(t *testing.T) {
	reference, err := os.ReadFile(filepath.Join(root, "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := os.ReadFile(filepath.Join(folder, "monitoring", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\bxpkg_[a-z_]+`)
	found := names.FindAllString(string(alerts), -1)
	for _, expr := range chart.Expressions() {
		found = append(found, names.FindAllString(expr, -1)...)
	}
	for _, name := range found {
		if !bytes.Contains(reference, []byte("`"+name+"`")) {
			t.Errorf("there is no metric %s", name)
		}
	}
	if len(found) < 8 {
		t.Errorf("%d metrics are used", len(found))
	}
}

// A mistake in the values is reported, not ignored.
func TestValuesAreChecked(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values.yaml")
	for content, want := range map[string]string{
		`{"replica": 3}`: "replica", `{"env": [{"name": "POD_NAMESPACE", "value": "x"}]}`: "/env/0/name",
	} {
		if err := os.WriteFile(values, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := command(t, "template", "xpkg", folder, "--kube-version", "v1.31.0", "-f", values)
		if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte(want)) {
			t.Errorf("%s: %v\n%s", content, err, out)
		}
	}
}

// command is Helm, of the version that the tools are pinned to.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if testing.Short() {
		t.Skip("builds Helm: skipped with -short")
	}
	cmd := exec.CommandContext(
		t.Context(), "go",
		append([]string{"tool", "-modfile=" + filepath.Join(root, "tools", "helm", "go.mod"), "helm"}, args...)...,
	)
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir)
	return cmd
}

func helm(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := command(t, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm %v: %v\n%s%s", args, err, out, stderr.Bytes())
	}
	return out
}

// printed returns the objects of the command by their kind and name, without the
// namespace, which is Helm's to make.
func printed(t *testing.T, o bootstrap.Options) map[string]any {
	t.Helper()
	objects, err := bootstrap.Manifests(o)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for _, o := range objects {
		plain, err := bootstrap.Plain(o)
		if err != nil {
			t.Fatal(err)
		}
		if o.GetObjectKind().GroupVersionKind().Kind != "Namespace" {
			put(t, out, plain)
		}
	}
	return out
}

func parse(t *testing.T, stream []byte) map[string]any {
	t.Helper()
	out := map[string]any{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096)
	for {
		var object map[string]any
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object) > 0 {
			put(t, out, object)
		}
	}
}

// put adds an object in the types of JSON, so that numbers are alike.
func put(t *testing.T, all map[string]any, object map[string]any) {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var plain map[string]any
	if err := json.Unmarshal(raw, &plain); err != nil {
		t.Fatal(err)
	}
	u := unstructured.Unstructured{Object: plain}
	key := u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
	if all[key] != nil {
		t.Errorf("%s is there twice", key)
	}
	all[key] = plain
}
