//go:build linux

package attack_test

import (
	"archive/tar"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gcr "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox/logs"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/scratch"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// attack is a hostile package.
type attack struct {
	// kind is Provider if it is empty.
	kind string
	// publish returns the reference of the package. By default it is the stream, with the
	// hostile runtime in a mode.
	publish     func(t *testing.T, a *arena, name string) string
	stream      string
	mode        []string
	annotations map[string]string
	// wants are the reasons of the condition Ready in one of which the package ends; "Ready"
	// for a package that works.
	wants []string
	// check checks further effects.
	check func(t *testing.T, a *arena, pkg v1.Package)
	// full attacks run only in the full lane, which also restarts the control plane after each package.
	full bool
}

// arena is where the attacks take place.
type arena struct {
	*plane
	registry string
	runtime  []byte
}

// push publishes a package with the hostile runtime in a mode.
func (a *arena) push(t *testing.T, name, stream string, mode ...string) string {
	t.Helper()
	return publish.Program(t, a.registry, "attack/"+name, "v1", []byte(stream), a.runtime, mode...).String()
}

// TestHostilePackagesDamageNothingElse installs hostile packages one after another. After
// each, the API server accepts writes, the healthy package works, the hostile one can be
// removed, and the control plane starts again.
//
// hardening: H12, I-4, I-8
func TestHostilePackagesDamageNothingElse(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane: skipped with -short")
	}
	full := lane.IsFull()
	runtime, err := scratch.Compile(filepath.Join("testdata", "hostile"))
	if err != nil {
		t.Fatal(err)
	}
	a := &arena{plane: newPlane(t, program.Build(t)), registry: cluster.Registry(t), runtime: runtime}
	healthy := a.install(t, v1.ProviderKind, "healthy", a.push(
		t, "healthy", provider("healthy", crd("things.healthy.test", "")), "serve",
	), nil)
	a.until(t, healthy, "Ready")
	breakDiscovery(t, a)

	// Otherwise the attacks take turns by their names, so that each kind of them is in the sample.
	const sample, restartEvery = 5, 3
	n, least := 0, 6
	if full {
		least = 25
	}
	all := attacks(t, a, full)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		attack := all[name]
		if !full && (attack.full || i%sample != 0) {
			continue
		}
		n++
		restart := full || n%restartEvery == 0
		if !t.Run(name, func(t *testing.T) { a.attack(t, name, attack, healthy, restart, n%2 == 0) }) &&
			t.Context().Err() != nil {
			return
		}
	}
	if n < least {
		t.Errorf("%d hostile packages, want at least %d", n, least)
	}
}

func (a *arena) attack(t *testing.T, name string, attack attack, healthy v1.Package, restart, kill bool) {
	id := "attack-" + strings.ToLower(strings.ReplaceAll(name, " ", "-"))
	ref := ""
	if attack.publish != nil {
		ref = attack.publish(t, a, id)
	} else {
		mode := attack.mode
		if mode == nil {
			mode = []string{"serve"}
		}
		ref = a.push(t, id, attack.stream, mode...)
	}
	kind := attack.kind
	if kind == "" {
		kind = v1.ProviderKind
	}
	pkg := a.install(t, kind, id, ref, attack.annotations)
	// A failed attack leaves nothing for the next one.
	t.Cleanup(func() {
		if !a.running() {
			a.start(t)
		}
		a.remove(t, pkg)
	})
	a.until(t, pkg, attack.wants...)
	a.undamaged(t, healthy)
	if attack.check != nil {
		attack.check(t, a, pkg)
	}
	if restart {
		a.restart(t, kill)
		a.undamaged(t, healthy)
	}
	a.remove(t, pkg)
	a.undamaged(t, healthy)
}

// breakDiscovery registers an API group that nothing serves.
func breakDiscovery(t *testing.T, a *arena) {
	t.Helper()
	broken := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.broken.test"},
		"spec": map[string]any{
			"group": "broken.test", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": "nowhere", "name": "gone"},
		},
	}}
	if err := a.client.Create(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
}

// attacks returns the hostile packages.
func attacks(t *testing.T, a *arena, full bool) map[string]attack {
	t.Helper()
	definitions := 200
	if full {
		definitions = 2000
	}
	var many strings.Builder
	for i := range definitions {
		many.WriteString(crd(fmt.Sprintf("bulk%ds.many.test", i), ""))
	}
	logOf := func(forbidden, end string) func(*testing.T, *arena, v1.Package) {
		return func(t *testing.T, a *arena, pkg v1.Package) {
			wait.Until(t, limit, "the runtime has tried", func() (string, bool) {
				log := a.runtimeLog(t, pkg)
				return log, strings.Contains(log, end)
			})
			if log := a.runtimeLog(t, pkg); strings.Contains(log, forbidden) {
				t.Errorf("the runtime reports %s:\n%.2000s", forbidden, log)
			}
		}
	}
	own := func(name string) string { return provider(name, crd("things."+name+".test", "")) }
	notHealthy := []string{"Crashed", "CrashLoop", "Starting", "UnhealthyPackageRevision"}
	return map[string]attack{
		// Webhooks.
		"webhook over everything": {stream: own("hooks") +
			webhook("ValidatingWebhookConfiguration", "*", "*/*"), wants: []string{"WebhooksNotAllowed"}},
		"allowed webhook that never serves": {
			stream: own("silent") + webhook("MutatingWebhookConfiguration", "", "configmaps"), wants: []string{"Ready"},
			annotations: map[string]string{"xpkg.dev/allowed-webhooks": "mutate * core/configmaps"},
		},
		"conversion webhook that never answers": {
			stream: provider("convert", crd("things.convert.test", "conversion")), wants: []string{"Ready"},
		},
		// Objects of others.
		"CRD of Kubernetes": {
			stream: provider("core", crd("clusterroles.rbac.authorization.k8s.io", "approved")),
			wants:  []string{"ReservedDefinition"},
		},
		"CRD of the manager": {stream: provider("pkg", crd("providers.pkg.crossplane.io", "")), wants: []string{
			"ReservedDefinition",
		}},
		"CRD of another package": {stream: provider("thief", crd("things.healthy.test", "")), wants: []string{
			"ForeignOwner",
		}},
		"kind of another package": {
			stream: provider("twin", strings.Replace(crd("others.healthy.test", ""), "kind: Others", "kind: Thing", 1)),
			wants:  []string{"NameTaken"},
		},
		"APIService in a package": {
			stream: own("aggregate") + document("apiregistration.k8s.io/v1", "APIService", "v1.healthy.test"),
			wants:  []string{"ObjectNotAllowed", "UnknownKind"},
		},
		"policy in a package": {
			stream: own("policy") + document("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "deny"),
			wants:  []string{"ObjectNotAllowed", "UnknownKind"},
		},
		"role binding in a package": {
			stream: own("bind") + document("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "admin"),
			wants:  []string{"ObjectNotAllowed", "UnknownKind"},
		},
		"Secret in a package": {stream: own("secret") +
			document("v1", "Secret", "credentials"), wants: []string{"ObjectNotAllowed", "UnknownKind"}},
		"package of another kind": {kind: v1.ConfigurationKind, stream: own("kind"), wants: []string{"WrongKind"}},
		// Size and form.
		"very many CRDs": {stream: provider("many", many.String()), wants: []string{"Ready"}},
		"huge schema": {stream: provider(
			"huge",
			strings.Replace(crd("things.huge.test", ""), "description: small", "description: "+strings.Repeat("x", 4<<20), 1),
		), wants: []string{"ObjectTooLarge", "YAMLLimit"}},
		"deep YAML": {stream: own("deep") + "---\na: " + strings.Repeat("[", 20000) +
			strings.Repeat("]", 20000) + "\n", wants: []string{"YAMLLimit"}},
		"alias bomb": {stream: own("alias") + "---\n" +
			aliasBomb(), wants: []string{"YAMLLimit", "InvalidYAML"}},
		"control characters in names": {
			stream: strings.Replace(own("control"), "name: control", "name: \"con\\e[2Jtrol\"", 1), wants: []string{"Ready"},
		},
		"control characters in text": {
			stream: strings.Replace(
				own("text"), "name: text",
				"name: text\n  annotations: {meta.crossplane.io/description: \"\\e]8;;http://evil.test\\a\"}", 1,
			), wants: []string{"Ready"},
		},
		"no YAML": {stream: "\x00\x01\x02", wants: []string{"InvalidYAML", "InvalidEncoding"}},
		// Permissions.
		"all permissions": {
			stream: permissions("admin", `{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}`),
			wants:  []string{"PermissionDenied"},
		},
		"escalate": {stream: permissions(
			"escalate", `{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [escalate]}`,
		), wants: []string{"PermissionDenied"}},
		"commands in pods": {
			stream: permissions("exec", `{apiGroups: [""], resources: [pods/exec], verbs: [create]}`),
			wants:  []string{"PermissionEscalation"},
		},
		"tokens": {
			stream: permissions("tokens", `{apiGroups: [""], resources: [serviceaccounts/token], verbs: [create]}`),
			wants:  []string{"PermissionEscalation"},
		},
		"installing packages": {
			stream: permissions("packages", `{apiGroups: [pkg.crossplane.io], resources: [providers], verbs: [create]}`),
			wants:  []string{"PermissionEscalation"},
		},
		"removing packages": {
			stream: permissions("installs", `{apiGroups: [packages.crossplane.io], resources: ["*"], verbs: ["*"]}`),
			wants:  []string{"PermissionEscalation"},
		},
		"pod of a name": {stream: permissions(
			"namedpod", `{apiGroups: [""], resources: [pods], resourceNames: [evil], verbs: [create, patch, get]}`,
		), wants: []string{"PermissionEscalation"}},
		"deployment of a name": {stream: permissions(
			"nameddeploy",
			`{apiGroups: [apps], resources: [deployments], resourceNames: [xpkg-manager], verbs: [patch, update, get]}`,
		), wants: []string{"PermissionEscalation"}},
		"certificate of a node": {stream: permissions(
			"nodecert",
			`{apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests, certificatesigningrequests/nodeclient], verbs: [create, get]}`,
		), wants: []string{"PermissionEscalation"}},
		"manifest of a name": {stream: permissions(
			"namedobject",
			`{apiGroups: [kubernetes.crossplane.io], resources: [objects], resourceNames: [evil], verbs: [patch]}`,
		), wants: []string{"PermissionEscalation"}},
		"takes over the manager": {
			stream: own("takeover"), mode: []string{"takeover"}, wants: []string{"Ready"},
			check: logOf("GRANTED", "takeover: end"),
		},
		// Dependencies.
		"dependency cycle": {publish: cycle, wants: []string{"DependencyCycle"}},
		"dependency bomb":  {publish: bomb, wants: []string{"Unsolvable"}},
		// Images.
		"compression bomb": {publish: hostileImage(func(t *testing.T, _ string) any { return bombLayer(t) }), wants: []string{
			"DecompressionLimit", "LayerTooLarge",
		}},
		"links out of the image": {publish: hostileImage(func(t *testing.T, _ string) any {
			return pack(
				t, tar.Header{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, file("out/attack-of-xpkg", "x", 0o644),
				file("program", string(a.runtime), 0o755),
			)
		}), wants: []string{"Ready"}, check: noFile("/etc/attack-of-xpkg")},
		"parent folders": {publish: hostileImage(func(t *testing.T, _ string) any {
			return pack(t, file("../../escape", "x", 0o644), file("program", "", 0o755))
		}), wants: []string{"UnsafeImage"}},
		"devices in the image": {publish: hostileImage(func(t *testing.T, _ string) any {
			return pack(
				t, tar.Header{Name: "disk", Typeflag: tar.TypeBlock, Devmajor: 8}, file("program", string(a.runtime), 0o755),
			)
		}), wants: []string{"UnsafeImage"}},
		"setuid in the image": {publish: hostileImage(func(
			t *testing.T, _ string,
		) any {
			return pack(t, file("program", string(a.runtime), 0o4755))
		}), wants: []string{"Ready"}},
		"other artifact": {publish: chart, wants: []string{"NotAPackage"}},
		"wrong digests":  {publish: lies, wants: []string{"DigestMismatch"}},
		// Runtimes.
		"forks":        {stream: own("forks"), mode: []string{"fork"}, wants: append([]string{"Ready"}, notHealthy...)},
		"fills memory": {stream: own("memory"), mode: []string{"memory"}, wants: notHealthy, full: true},
		"fills its disk": {
			stream: own("disk"), mode: []string{"disk"}, wants: []string{"Ready"}, check: logOf("nothing", "disk:"),
		},
		"floods its log":  {stream: own("flood"), mode: []string{"flood"}, wants: []string{"Ready"}, check: smallLogs},
		"ignores signals": {stream: own("stubborn"), mode: []string{"stubborn"}, wants: []string{"Ready"}},
		"crashes":         {stream: own("crash"), mode: []string{"crash"}, wants: notHealthy},
		"takes ports": {
			stream: own("listen"), mode: []string{"listen", hostOf(a.state.Server), a.state.Registry}, wants: []string{"Ready"},
			check: logOf("<nil>", a.state.Registry),
		},
		"reads the data directory": {
			stream: own("read"), mode: []string{"read", a.dir, "/proc/1/root" + a.dir, "/root"}, wants: []string{"Ready"},
			check: logOf("READ", "read: /root"),
		},
		"looks for descriptors": {
			stream: own("fds"), mode: []string{"descriptors"}, wants: []string{"Ready"},
			check: logOf("DESCRIPTOR", "descriptors: end"),
		},
		"kills other processes": {
			stream: own("kill"), mode: []string{"signal"}, wants: append([]string{"Ready"}, notHealthy...),
			check: logOf("KILLED", "signal: end"),
		},
	}
}

// noFile checks that a file of the machine does not exist.
func noFile(path string) func(*testing.T, *arena, v1.Package) {
	return func(t *testing.T, _ *arena, _ v1.Package) {
		t.Helper()
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was created", path)
		}
	}
}

func hostOf(server string) string {
	host := strings.TrimPrefix(server, "https://")
	if _, _, err := net.SplitHostPort(host); err != nil {
		return "127.0.0.1:1"
	}
	return host
}

// smallLogs checks that the files with the log of a runtime stay within their limit. The runtime goes on writing, so
// the length of what `xpkg logs` prints is no measure.
func smallLogs(t *testing.T, a *arena, pkg v1.Package) {
	t.Helper()
	pattern := filepath.Join(a.dir, "runtime", logs.Folder, pkg.GetName()+"-*")
	wait.Until(t, limit, "the log is rotated", func() (string, bool) {
		files, err := filepath.Glob(pattern)
		return fmt.Sprint(files, err), len(files) > 1
	})
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) > 2 {
		t.Errorf("the runtime has the logs %q, %v; want at most two", files, err)
	}
	for _, file := range files {
		// A file may end with a whole line.
		if info, err := os.Stat(file); err == nil && info.Size() > logs.DefaultSize+1<<20 {
			t.Errorf("%s has %d bytes", file, info.Size())
		}
	}
}

// provider returns the stream of a provider with further documents.
func provider(name string, documents ...string) string {
	return "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: " + name + "\n" +
		strings.Join(documents, "")
}

func permissions(name, rule string) string {
	return provider(name, "spec:\n  controller:\n    permissionRequests:\n    - "+rule+
		"\n", crd("things."+name+".test", ""))
}

func document(apiVersion, kind, name string) string {
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s}\n", apiVersion, kind, name)
}

// crd returns a CRD of a cluster-scoped kind. The option "approved" adds the annotation for groups of
// Kubernetes, and "conversion" a second version with a conversion webhook.
func crd(name, option string) string {
	plural, group, _ := strings.Cut(name, ".")
	kind := strings.ToUpper(plural[:1]) + plural[1:]
	if plural == "things" {
		kind = "Thing"
	}
	annotations, conversion, second := "", "", ""
	switch option {
	case "approved":
		annotations = ", annotations: {api-approved.kubernetes.io: \"https://example.org\"}"
	case "conversion":
		conversion = "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: x, name: x}}}}\n"
		second = "  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n"
	}
	return fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s%s}
spec:
  group: %s
  scope: Cluster
  names: {plural: %s, singular: %s, kind: %s, listKind: %sList}
%s  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: small, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}
%s`, name, annotations, group, plural, strings.ToLower(kind), kind, kind, conversion, second)
}

// webhook returns a webhook configuration over a resource that fails closed.
func webhook(kind, group, resource string) string {
	return fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1
kind: %s
metadata: {name: hostile}
webhooks:
- name: hostile.attack.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {namespace: x, name: x, path: /validate}}
  rules: [{apiGroups: [%q], apiVersions: ["*"], operations: ["*"], resources: [%q]}]
`, kind, group, resource)
}

func aliasBomb() string {
	var out strings.Builder
	out.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&out, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return out.String()
}

// requires returns the stream of a Configuration with dependencies.
func requires(name string, references ...string) string {
	out := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: " + name +
		"}\nspec:\n  dependsOn:\n"
	for _, r := range references {
		out += "  - {configuration: " + r + ", version: \">=v1.0.0\"}\n"
	}
	return out
}

// cycle returns a provider that requires a Configuration that requires it.
func cycle(t *testing.T, a *arena, name string) string {
	t.Helper()
	other := a.registry + "/attack/" + name + "-other"
	publish.Stream(t, a.registry, "attack/"+name+"-other", "v1.0.0", []byte(requires("other", a.registry+"/attack/"+name)))
	stream := strings.Replace(requires("cycle", other), "kind: Configuration", "kind: Provider", 1) +
		crd("things.cycle.test", "")
	return publish.Stream(t, a.registry, "attack/"+name, "v1.0.0", []byte(stream)).String()
}

// bomb returns a provider whose dependencies double at each level, and end at packages that do not exist.
func bomb(t *testing.T, a *arena, name string) string {
	t.Helper()
	const levels, width = 4, 3
	at := func(level, i int) string { return fmt.Sprintf("%s/attack/%s-%d-%d", a.registry, name, level, i) }
	for level := range levels {
		for i := range width {
			var next []string
			for j := range width {
				next = append(next, at(level+1, j))
			}
			repository := strings.TrimPrefix(at(level, i), a.registry+"/")
			publish.Stream(t, a.registry, repository, "v1.0.0", []byte(requires("bomb", next...)))
		}
	}
	stream := strings.Replace(requires("bomb", at(0, 0), at(0, 1), at(0, 2)), "kind: Configuration", "kind: Provider", 1) +
		crd("things.bomb.test", "")
	return publish.Stream(t, a.registry, "attack/"+name, "v1.0.0", []byte(stream)).String()
}

// hostileImage publishes a package whose image has a further layer: an archive, or a layer
// that takes the place of the package's own.
func hostileImage(layer func(t *testing.T, stream string) any) func(*testing.T, *arena, string) string {
	return func(t *testing.T, a *arena, name string) string {
		t.Helper()
		stream := provider(name, crd("things."+name+".test", ""))
		img := imageOf(t, streamLayer(t, stream))
		switch l := layer(t, stream).(type) {
		case []byte:
			img = imageOf(t, streamLayer(t, stream), layerOf(t, l))
		case gcr.Layer:
			img = imageOf(t, l)
		}
		return pushImage(t, a.registry, "attack/"+name, img)
	}
}

// chart publishes an artifact of another tool.
func chart(t *testing.T, a *arena, name string) string {
	t.Helper()
	img := mutate.ConfigMediaType(imageOf(t, streamLayer(t, "name: chart\n")), "application/vnd.cncf.helm.config.v1+json")
	return pushImage(t, a.registry, "attack/"+name, img)
}

// lies publishes a package in a registry that changes the content of blobs.
func lies(t *testing.T, a *arena, name string) string {
	t.Helper()
	ref := a.push(t, name, provider("lies", crd("things.lies.test", "")), "serve")
	return strings.Replace(ref, a.registry, lyingRegistry(t, a.registry), 1)
}
