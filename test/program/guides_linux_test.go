package program_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/localcore"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/guide"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/internal/testing/program"
	"github.com/xpkg-dev/xpkg/internal/testing/scratch"
)

// sharedGuides returns the guides that are executed on the shared control plane, which runs no runtimes.
func sharedGuides(t testing.TB, registry, dependencies string) []*guide.Guide {
	local, network := port.Free(t), port.Free(t)
	return []*guide.Guide{
		{
			Name: "air-gap",
			Replaced: map[string]string{
				"xpkg.crossplane.io/": dependencies + "/guide-airgap/", "registry.example.com/mirror": registry + "/guide-mirrored",
			},
			Tools: map[string]string{"skopeo": "skopeo"},
			Loose: []string{"xpkg bundle save"},
		},
		{
			Name:     "build-and-publish",
			Replaced: map[string]string{"127.0.0.1:15000": registry, "127.0.0.1:5055": registry},
			Exits:    map[string]int{"xpkg check fleet --no-render": 4, "xpkg lint bad": 4, "xpkg validate boat.yaml": 4},
			Skipped: map[string]string{
				"docker build":                      "there is no Docker daemon",
				"xpkg test boats":                   "its function is in a public registry",
				"xpkg build -f package --embed-run": "its image is of the Docker daemon",
				"xpkg login ghcr.io":                "there is no network",
			},
			// Without runtimes, the provider waits for nothing.
			Loose: []string{"xpkg install provider"},
		},
		{
			Name:     "configure",
			Replaced: map[string]string{"/home/ann": "$HOME"},
		},
		{
			Name:    "dependencies",
			Awaited: []string{"kubectl get lock"},
			Replaced: map[string]string{
				"xpkg.crossplane.io/":       dependencies + "/",
				"xpkg plan update platform": "xpkg plan update --dependency-upgrades Upgrade platform",
				"xpkg autoremove --wait":    "xpkg autoremove --yes --wait",
				"xpkg uninstall platform":   "xpkg uninstall platform --yes",
			},
			Exits: map[string]int{
				"xpkg resolve xpkg": 9, "xpkg plan": 2, "xpkg plan update acme-wires": 9, "xpkg autoremove --dry-run": 2,
			},
			Before: map[string]string{
				"xpkg outdated":             ". ../publish.sh && publish ../later",
				"xpkg plan update platform": ". ../publish.sh && publish ../next",
			},
		},
		{
			Name:     "first-generation",
			Replaced: map[string]string{"ghcr.io": registry},
		},
		{Name: "gitops"},
		{
			Name:     "install-by-kind",
			Replaced: map[string]string{"xpkg.upbound.io": registry, "registry.example.com": registry + "/guide-kinds"},
			Exits:    map[string]int{"xpkg install --kind Queue": 9},
		},
		{
			Name: "kinds",
			Replaced: map[string]string{
				"ghcr.io": registry + "/guide-clouds", "--wait 2m": "--wait 2m --yes", "--wait 1m": "--wait 1m --yes",
				"'*.clouds.example.com'": "'*.clouds.example.com' --yes",
			},
			Loose: []string{"xpkg install", "xpkg activate", "xpkg deactivate", "xpkg kinds"},
		},
		{
			Name:     "install-packages",
			Replaced: map[string]string{"xpkg.crossplane.io": registry},
			Skipped: map[string]string{
				"xpkg uninstall provider-nop": "no custom resource has a finalizer",
				"kubectl patch crd":           "its CRD is an example",
			},
			Loose: []string{"kubectl get providers.pkg"},
		},
		{
			Name: "package-cache",
			Replaced: map[string]string{
				"/var/lib/xpkg-cache": "cache", "xpkg cache add": "xpkg cache add --cache-dir cache",
				"xpkg cache ls":     "xpkg cache ls --cache-dir cache",
				"xpkg cache verify": "xpkg cache verify --cache-dir cache",
				"xpkg cache prune":  "xpkg cache prune --cache-dir cache",
			},
			Loose: []string{"xpkg cache ls", "xpkg cache verify"},
		},
		{
			Name:     "plan",
			Replaced: map[string]string{"registry.example.com": registry, "plan-3f786850e387.json": "plan-*.json"},
			Exits:    map[string]int{"xpkg plan update": 2, "xpkg apply plan.json": 9},
			Loose:    []string{"xpkg plan update provider-boats v2.0.0 --out", "xpkg apply"},
		},
		{
			Name:     "private-registries",
			Replaced: map[string]string{"secret docker-registry acme ": "secret docker-registry guide-acme "},
			Skipped: map[string]string{
				"eksctl": "it changes a cloud", "az ": "it changes a cloud", "gcloud": "it changes a cloud",
				"helm upgrade": "no release of the chart exists",
				"kubectl -n crossplane-system rollout restart deployment xpkg": "the manager is no Pod",
			},
		},
		{
			Name: "registry-web-page",
			Replaced: map[string]string{
				"ghcr.io": registry + "/guide-pages", "registry.example.org/index:main": registry + "/guide-pages/index:main",
			},
		},
		{
			Name: "run-a-registry",
			Replaced: map[string]string{
				"127.0.0.1:5000":                     local,
				"xpkg registry serve --dir registry": "xpkg registry serve --dir registry --listen " + local,
				"xpkg registry serve --dir front":    "xpkg registry serve --dir front --listen " + local,
				"--listen :8443":                     "--listen " + network, "--backend ghcr.io": "--backend " + registry,
				"revoke 3f1c0a9d2b7e":        "revoke $(xpkg registry token list --dir registry | awk '/alice/ {print $1}')",
				"registry.example.org/acme":  registry + "/guide-serve/acme",
				"registry.example.org/index": registry + "/guide-serve/index",
				"mirror.example.com":         registry + "/guide-mirror",
			},
			Served: []string{"xpkg registry serve"},
			Tools:  map[string]string{"curl": "curl"},
			// The index follows a push.
			Before: map[string]string{
				"xpkg search boat": "until xpkg search boat --index 127.0.0.1:5000/index:main; do sleep 0.1; done",
			},
		},
		{
			Name: "runtime",
			Replaced: map[string]string{
				"hello-0123456789ab": "$(kubectl get provider.pkg guide-hello -o jsonpath='{.status.currentRevision}')",
			},
		},
		{
			Name: "search-and-index",
			Replaced: map[string]string{
				"--registry registry.example.com": "--registry " + registry + "/guide-search",
				"registry.example.com/index:main": registry + "/guide/index:main",
				"ghcr.io/acme/index:main":         registry + "/guide/other:main", "search bucket": "search boat",
			},
			Tools: map[string]string{
				"openssl": "openssl",
				"xpkg index build registry.example.com/index:main --registry registry.example.com --sign-key": "openssl",
				"xpkg search bucket --index registry.example.com/index:main --index-key":                      "openssl",
			},
			Loose: []string{"xpkg search", "xpkg index"},
		},
		{
			Name:     "troubleshoot",
			Replaced: map[string]string{"registry.example.com": registry, "missing": "guide-missing"},
		},
		{
			Name: "upgrade",
			Replaced: map[string]string{
				"--wait 2m": "--wait 2m --yes", "--wait 5m": "--wait 5m --yes", "update --all": "update --all --yes",
				"registry.example.com/upgrade/": registry + "/guide/",
			},
			Exits: map[string]int{"xpkg update configuration/sloops": 9},
			Skipped: map[string]string{
				"kubectl patch providerrevision": "its revision is an example",
			},
			Loose: []string{"xpkg update", "xpkg history", "xpkg rollback"},
		},
	}
}

// ownGuides returns the guides that are executed one after the other on the control plane of their reader, which the
// first of them starts.
func ownGuides(api, registry, core string) []*guide.Guide {
	return []*guide.Guide{
		{
			Name: "first-control-plane",
			Replaced: map[string]string{
				"/home/you": "$HOME", "127.0.0.1:16443": api, "127.0.0.1:15000": registry, "xpkg.crossplane.io/": core + "/",
				"xpkg up --detach": "xpkg up --detach --port " + portOf(api) + " --registry-port " + portOf(registry),
			},
			Skipped: map[string]string{
				"crane":  "it is another program, and there is no network",
				"skopeo": "it is another program, and there is no network",
			},
			Loose: []string{"xpkg down"},
		},
		{Name: "processes", Served: []string{"xpkg logs provider/hello -f"}},
		{Name: "certificates"},
		{Name: "backup-and-restore"},
	}
}

// Each command of the guide works, in the order of the guide and in one folder, and prints what the guide shows.
func TestGuidesWorkFromTopToBottom(t *testing.T) {
	lane.Full(t, "test/guides.TestGuidesWorkFromTopToBottom", "test/program.TestEveryGuideIsExecuted")
	p := shared(t)
	c := newClient(t, p.Kubeconfig)
	for _, g := range sharedGuides(t, p.Registry, cluster.Registry(t)) {
		t.Run(g.Name, func(t *testing.T) {
			before := strings.Fields(p.xpkg(t, "list", "-o", "name"))
			defer func() {
				if err := c.DeleteAllOf(context.Background(), &v1beta1.ImageConfig{}); err != nil {
					t.Error(err)
				}
				added := slices.DeleteFunc(
					strings.Fields(p.xpkg(t, "list", "-o", "name")), func(name string) bool { return slices.Contains(before, name) },
				)
				if len(added) > 0 {
					p.xpkg(t, append(append([]string{"uninstall"}, added...), "--yes", "--wait", limit.String())...)
				}
			}()
			folder := t.TempDir()
			if g.Name == "build-and-publish" {
				folder = copyOfExamples(t)
			}
			r := &guide.Reader{
				Folder: folder,
				Env:    append(slices.Clone(p.env), "KUBECONFIG="+p.Kubeconfig, "HOME="+t.TempDir(), "REGISTRY="+p.Registry),
			}
			r.Env = append(r.Env, program.GoFolders(t)...)
			g.Run(t, r)
		})
	}
}

// The guides about a control plane of the reader work one after the other, in one folder.
func TestGuidesWorkOnAControlPlaneOfTheirReader(t *testing.T) {
	w := newWorkshop(t)
	home, err := os.MkdirTemp(w.dir, homePrefix)
	if err != nil {
		t.Fatal(err)
	}
	api, registry, core := port.Free(t), port.Free(t), cluster.Registry(t)
	pushCore(t, core+"/crossplane/crossplane:v2.3.4")
	r := &guide.Reader{Folder: copyOfExamples(t), Env: append(slices.Clone(w.env), "HOME="+home, "REGISTRY="+registry)}
	r.Env = append(r.Env, program.GoFolders(t)...)
	t.Cleanup(func() {
		for _, dir := range []string{
			filepath.Join(home, ".local", "share", "xpkg", "default"), filepath.Join(r.Folder, "backup"),
		} {
			w.run(context.Background(), "", "down", "--data-dir", dir)
		}
	})
	for i, g := range ownGuides(api, registry, core) {
		if i == 1 {
			// The first guide prints this variable.
			r.Env = append(r.Env, "KUBECONFIG="+filepath.Join(home, ".local", "share", "xpkg", "default", "kubeconfig"))
		}
		if !t.Run(g.Name, func(t *testing.T) { g.Run(t, r) }) {
			t.FailNow()
		}
	}
}

// pushCore pushes an image of the stand-in of core.
func pushCore(t *testing.T, reference string) {
	t.Helper()
	executable, err := os.ReadFile(buildCore(t))
	if err != nil {
		t.Fatal(err)
	}
	image, err := scratch.Image("crossplane", executable)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	labelled := config.DeepCopy()
	labelled.Config.Labels = map[string]string{localcore.LabelVersion: "v2.3.4"}
	if image, err = mutate.ConfigFile(image, labelled); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// Every guide with commands has a file in one package of tests, which executes it.
func TestEveryGuideIsExecuted(t *testing.T) {
	documents, err := filepath.Glob(filepath.Join("..", "..", "docs", "guides", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range documents {
		content, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(document), ".md")
		found, err := filepath.Glob(filepath.Join("..", "*", "testdata", "guides", name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if len(guide.Steps(string(content))) > 0 {
			want = 1
		}
		if len(found) != want {
			t.Errorf("%s: %d packages of tests have a file for the guide, want %d", name, len(found), want)
		}
	}
	var executed []string
	for _, g := range slices.Concat(sharedGuides(t, "", ""), ownGuides("", "", "")) {
		executed = append(executed, g.Name)
	}
	slices.Sort(executed)
	if diff := cmp.Diff(guide.Files(t), executed); diff != "" {
		t.Errorf("executed guides (-files +executed):\n%s", diff)
	}
}

func portOf(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// copyOfExamples returns a copy of the folder of the examples, in their module.
func copyOfExamples(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	folder := filepath.Join(root, "examples")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join("..", "..", "examples"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
