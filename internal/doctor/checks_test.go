package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// healthy returns the facts of a cluster with a manager.
func healthy() Facts {
	return Facts{
		Namespace: "crossplane-system", Version: "v1.37.1", Minor: 37, Now: now, Fenced: true,
		Cores: []crossplane.Core{{Runs: true, Account: types.NamespacedName{
			Namespace: "crossplane-system", Name: "crossplane",
		}}},
		Leases: []Lease{{Namespace: "crossplane-system", Holder: "xpkg-1", Expires: now.Add(time.Second)}, {
			Namespace: "old", Holder: "xpkg-0", Expires: now.Add(-time.Second),
		}},
		Definitions: []Definition{{Name: "providers.pkg.crossplane.io", Exists: true, IsOwn: true, IsCurrent: true}, {
			Name: "locks.pkg.crossplane.io", Exists: true, IsOwn: true, IsCurrent: true,
		}},
		Webhooks: []Webhook{{
			Configuration: "validatingwebhookconfiguration a", Name: "a.example.org", Service: "ns/a", Blocks: true,
			Endpoints: 1,
		}},
		Packages: []Package{{Kind: "Provider", Name: "aws", Ready: true}},
	}
}

// Each defect of a cluster has one finding, with the command that corrects it, and the class of the worst failure is
// the exit code.
func TestCheck(t *testing.T) {
	writes := crossplane.Core{Runs: true, Writes: true, Account: types.NamespacedName{Namespace: "other", Name: "xp"}}
	for name, tc := range map[string]struct {
		change func(*Facts)
		result Result
		check  string
		parts  []string
		exit   int
	}{
		"healthy": {func(*Facts) {}, OK, "", nil, 0},
		"empty": {func(f *Facts) {
			*f = Facts{Version: "v1.37.1", Minor: 37, Now: now, Definitions: []Definition{{Name: "a"}}}
		}, OK, "", nil, 0},
		"old API": {
			func(f *Facts) { f.Version, f.Minor = "v1.29.0", 29 }, Warn, "API server", []string{"v1.29.0", "1.30"}, 0,
		},
		"not admin": {
			func(f *Facts) { f.Lacking = []string{"create clusterroles"} }, Fail, "permissions",
			[]string{"create clusterroles", "xpkg bootstrap --apply"}, errcode.Unauthorized.Exit,
		},
		"unfenced": {
			func(f *Facts) { f.Cores = append(f.Cores, writes) }, Fail, "Crossplane core",
			[]string{"namespace other", "xpkg bootstrap --beside-core --core-account other/xp"}, errcode.Conflict.Exit,
		},
		"RBAC manager": {
			func(f *Facts) { f.Cores[0].RunsRBACManager = true }, Fail, "Crossplane core",
			[]string{"RBAC manager", "rbacManager.replicas=0"}, errcode.Conflict.Exit,
		},
		"runtimes": {
			func(f *Facts) { f.Cores[0].RunsRuntimes = true }, Fail, "Crossplane core", []string{"--package-runtime=External"},
			errcode.Conflict.Exit,
		},
		"XRD without roles": {func(f *Facts) { f.XRDs = []XRD{{Name: "xs.example.org", WithoutRoles: true}} }, Fail, "XRDs",
			[]string{
				"cannot establish xs.example.org: roles are missing",
				"`kubectl describe compositeresourcedefinition xs.example.org`",
			}, errcode.Unhealthy.Exit},
		"ungranted XRDs": {func(f *Facts) {
			rules := []rbacv1.PolicyRule{{APIGroups: []string{"example.org"}, Resources: []string{"xs"}, Verbs: []string{"*"}}}
			f.XRDs = []XRD{{Name: "xs.example.org", Group: "example.org", WithoutRoles: true, Ungranted: rules}, {
				Name: "ys.example.org", Group: "example.org", WithoutRoles: true, Ungranted: rules,
			}}
		}, Fail, "XRDs", []string{"xs.example.org, ys.example.org: the manager may not grant",
			"`xpkg bootstrap --apply --package-group example.org`", "kind: ClusterRoleBinding"}, errcode.Unhealthy.Exit},
		"roles without effect": {func(f *Facts) { f.XRDs = []XRD{{Name: "xs.example.org", Denied: true}} }, Fail, "XRDs",
			[]string{"its ClusterRole does not collect the roles", "rbacManager.deploy=true and rbacManager.replicas=0"},
			errcode.Unhealthy.Exit},
		"two managers": {
			func(f *Facts) { f.Leases[1].Expires = now.Add(time.Second) }, Fail, "manager",
			[]string{"xpkg-0 in old", "kubectl scale deployment/xpkg --namespace old"}, errcode.Conflict.Exit,
		},
		"elsewhere": {
			func(f *Facts) { f.Namespace = "mine" }, Fail, "manager", []string{"--namespace crossplane-system"},
			errcode.Conflict.Exit,
		},
		"no manager": {
			func(f *Facts) { f.Leases = nil }, Warn, "manager", []string{"kubectl get pods --namespace crossplane-system"}, 0,
		},
		"changed fence": {
			func(f *Facts) { f.FenceChanged = true }, Warn, "runtime fence",
			[]string{"xpkg-runtime-fence", "kubectl delete validatingadmissionpolicy"}, 0,
		},
		"no fence": {
			func(f *Facts) { f.Fenced = false }, Warn, "runtime fence", []string{"xpkg-runtime-fence", "xpkg bootstrap --apply"},
			0,
		},
		"no consents": {func(f *Facts) {
			f.ConsentGap = consent.Gap{Why: "the policy xpkg-consents does not exist", Fix: "Apply it."}
		}, Warn, "consents", []string{"xpkg-consents does not exist", "Apply it."}, 0},
		"no runtimes": {func(f *Facts) { f.Fenced, f.WithoutRuntimes = false, true }, OK, "", nil, 0},
		"former runtime": {func(f *Facts) {
			f.FormerRuntimes = []FormerRuntime{{
				Namespace: "crossplane-system", Deployment: "aws-1", Owner: "providerrevision/aws-1", Chosen: "External",
			}}
		}, Warn, "former runtimes", []string{"crossplane-system/aws-1 of providerrevision/aws-1", "runtime is External",
			"`kubectl delete deployment --namespace crossplane-system aws-1`"}, 0},
		"foreign API": {
			func(f *Facts) { f.Definitions[0].IsOwn = false }, Fail, "package API",
			[]string{"providers.pkg.crossplane.io", "--take-over"}, errcode.Conflict.Exit,
		},
		"older API": {
			func(f *Facts) { f.Definitions[1].IsCurrent = false }, Warn, "package API",
			[]string{"locks.pkg.crossplane.io", "xpkg bootstrap --apply"}, 0,
		},
		"missing CRD": {
			func(f *Facts) { f.Definitions[1] = Definition{Name: "locks.pkg.crossplane.io"} }, Warn, "package API",
			[]string{"missing: locks.pkg.crossplane.io"}, 0,
		},
		"dead webhook": {
			func(f *Facts) { f.Webhooks[0].Endpoints = 0 }, Fail, "webhooks",
			[]string{"ns/a", "rejects", "kubectl delete validatingwebhookconfiguration a"}, errcode.Unhealthy.Exit,
		},
		"harmless webhook": {func(f *Facts) { f.Webhooks[0].Endpoints, f.Webhooks[0].Blocks = 0, false }, Warn, "webhooks",
			[]string{"kubectl describe service --namespace ns a"}, 0},
		"unhealthy": {func(f *Facts) {
			f.Packages[0] = Package{Kind: "Provider", Name: "aws", Reason: "CrashLoop", Message: "exits with code 7"}
		}, Fail, "packages", []string{"provider/aws", "exits with code 7",
			"xpkg describe provider/aws"}, errcode.Unhealthy.Exit},
		"doubled code": {func(f *Facts) {
			f.Packages[0] = Package{
				Kind: "Provider", Name: "aws", Reason: "TagNotFound", Message: "TagNotFound: there is no tag v9",
			}
		}, Fail, "packages", []string{"not ready: TagNotFound: there is no tag v9"}, errcode.Unhealthy.Exit},
		"waiting": {func(f *Facts) {
			f.Packages[0] = Package{Kind: "Provider", Name: "aws", Reason: "DependencyComing", Waiting: true}
		}, Warn, "packages", []string{"provider/aws waits: DependencyComing Run", "xpkg describe provider/aws"}, 0},
		"paused": {func(f *Facts) {
			f.Packages[0] = Package{
				Kind: "Provider", Name: "aws", Ready: true, Resume: "kubectl annotate provider.pkg aws crossplane.io/paused-",
			}
		}, Warn, "packages", []string{"provider/aws is paused",
			"kubectl annotate provider.pkg aws crossplane.io/paused-"}, 0},
		"paused before it was reconciled": {func(f *Facts) {
			f.Packages[0] = Package{
				Kind: "Provider", Name: "aws", Resume: "kubectl annotate provider.pkg aws crossplane.io/paused-",
			}
		}, Warn, "packages", []string{"provider/aws is paused"}, 0},
		"paused and failed": {func(f *Facts) {
			f.Packages[0] = Package{
				Kind: "Provider", Name: "aws", Reason: "TagNotFound", Message: "no tag v9",
				Resume: "kubectl annotate provider.pkg aws crossplane.io/paused-",
			}
		}, Fail, "packages", []string{"provider/aws is not ready"}, errcode.Unhealthy.Exit},
		"paused install object": {func(f *Facts) {
			f.FirstGeneration = append(f.FirstGeneration, Package{
				Kind: "PackageInstall", Namespace: "team", Name: "redis", Ready: true,
				Resume: "kubectl annotate --namespace team packageinstalls.packages.crossplane.io redis crossplane.io/paused-",
			})
		}, Warn, "first generation", []string{
			"kubectl annotate --namespace team packageinstalls.packages.crossplane.io redis crossplane.io/paused-",
		}, 0},
		"install object": {func(f *Facts) {
			f.FirstGeneration = append(f.FirstGeneration, Package{
				Kind: "PackageInstall", Namespace: "team", Name: "redis", Reason: "NamespacedVersionConflict", Message: "of v2",
			})
		}, Fail, "first generation", []string{"packageinstall/team/redis is not ready: NamespacedVersionConflict: of v2",
			"xpkg describe packageinstall/team/redis"}, errcode.Unhealthy.Exit},
		"install object without a package": {func(f *Facts) {
			f.FirstGeneration = append(f.FirstGeneration, Package{
				Kind: "ClusterPackageInstall", Namespace: "team", Name: "redis", Reason: "NoProvider",
				Describe: "kubectl describe --namespace team clusterpackageinstalls.packages.crossplane.io redis",
			})
		}, Fail, "first generation", []string{"clusterpackageinstall/team/redis is not ready: NoProvider",
			"kubectl describe --namespace team clusterpackageinstalls.packages.crossplane.io redis"}, errcode.Unhealthy.Exit},
		"not reconciled": {
			func(f *Facts) { f.Packages[0] = Package{Kind: "Provider", Name: "aws"} }, Warn, "packages",
			[]string{"provider/aws is not reconciled yet"}, 0,
		},
		"registry": {func(f *Facts) {
			f.Registries = []Registry{{Host: "a.example.org"}, {Host: "b.example.org", Error: "refused"}}
		}, Warn, "registries",
			[]string{"b.example.org does not respond to this machine: refused", "--ca-file"}, 0},
		"escalates": {
			func(f *Facts) { f.Escalation = []string{"escalate", "bind"} }, Warn, "manager permissions",
			[]string{"escalate and bind", "--package-group"}, 0,
		},
		"with a remedy": {func(f *Facts) {
			f.Packages[0] = Package{
				Kind: "Provider", Name: "aws", Reason: "TagNotFound", Message: "TagNotFound: no tag v9. List the tags.",
				Fix: "List the tags.",
			}
		}, Fail, "packages", []string{"List the tags."}, errcode.Unhealthy.Exit},
		"unreadable": {
			func(f *Facts) { f.Unread = map[string]string{"Crossplane core": "forbidden"} }, Warn, "Crossplane core",
			[]string{"cannot be checked: forbidden"}, 0,
		},
		"worst of two": {func(f *Facts) {
			f.Cores, f.Webhooks[0].Endpoints = []crossplane.Core{writes}, 0
		}, Fail, "webhooks", nil, errcode.Unhealthy.Exit},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy()
			tc.change(&f)
			findings := Check(f)
			var bad []Finding
			for _, finding := range findings {
				if (finding.Fix == "") != (finding.Result == OK) {
					t.Errorf("a finding with a defect has a fix, and no other: %+v", finding)
				}
				if finding.Result == tc.result && finding.Result != OK && finding.Check == tc.check {
					bad = append(bad, finding)
				}
				if finding.Result != OK && tc.result == OK {
					t.Errorf("unexpected: %+v", finding)
				}
			}
			if tc.result != OK && len(bad) != 1 {
				t.Fatalf("got %+v, want one %s of %s", findings, tc.result, tc.check)
			}
			for _, finding := range bad {
				if strings.Count(finding.Message+" "+finding.Fix, "List the tags.") > 1 {
					t.Errorf("the fix is repeated: %+v", finding)
				}
			}
			for _, part := range tc.parts {
				if !strings.Contains(bad[0].Message+" "+bad[0].Fix, part) {
					t.Errorf("%+v lacks %q", bad[0], part)
				}
			}
			exit, failure := 0, (*errcode.Error)(nil)
			if errors.As(Err(findings), &failure) {
				exit = failure.Code.Class.Exit
			}
			if exit != tc.exit {
				t.Errorf("exit code %d, want %d", exit, tc.exit)
			}
		})
	}
}
