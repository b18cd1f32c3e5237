package manager

import (
	"errors"
	"io"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/doctor"
	"github.com/xpkg-dev/xpkg/internal/errcodes"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// DoctorCmd implements `xpkg doctor`.
type DoctorCmd struct {
	Namespace string `default:"crossplane-system" config:"" help:"Namespace of the manager."`
	flags.TrustFlags
	connection.ClusterFlags
	terminal.OutputFlag
}

// Run prints the findings of all checks. It fails if a check failed.
func (c *DoctorCmd) Run(env *terminal.Env) error {
	cfg, err := c.Config(env.Context)
	if err != nil {
		return err
	}
	cluster, err := clusterClient(cfg)
	if err != nil {
		return apiserver.Classify(err, "reach the cluster")
	}
	opts, err := flags.RegistryFlags{TrustFlags: c.TrustFlags}.Options(env.Context, oci.Limits{}, nil)
	if err != nil {
		return err
	}
	opts.Attempts = 1
	registries := remote.New(opts)
	defer registries.Close()
	reader := doctor.Reader{Config: cfg, Client: cluster, Frontend: env.Frontend, Namespace: c.Namespace, Now: time.Now, Code: errcodes.Named, Ping: registries.Ping}
	facts, err := reader.Read(env.Context)
	if err != nil {
		return apiserver.Classify(err, "read the state of the cluster")
	}
	findings := doctor.Check(facts)
	err = c.Print(env.Stdout, findings, func(w io.Writer) error {
		var rows [][]string
		for _, f := range findings {
			rows = append(rows, []string{string(f.Result), f.Check, f.Message})
		}
		if err := terminal.WriteTable(w, []string{"RESULT", "CHECK", "FINDING"}, rows); err != nil {
			return err
		}
		return printFixes(w, findings)
	})
	if err != nil {
		return err
	}
	return doctor.Err(findings)
}

// printFixes prints the remedies below the table, each once.
func printFixes(w io.Writer, findings []doctor.Finding) error {
	var b strings.Builder
	printed := map[string]bool{}
	for _, f := range findings {
		if f.Fix == "" || printed[f.Fix] {
			continue
		}
		printed[f.Fix] = true
		b.WriteString("\n" + f.Check + ": " + f.Fix)
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

// clusterClient returns a client for the kinds that the commands of the manager read.
func clusterClient(cfg *rest.Config) (client.Client, error) {
	scheme, err := apis.NewScheme()
	if err != nil {
		return nil, err
	}
	err = errors.Join(admissionv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme),
		authorizationv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme))
	if err != nil {
		return nil, err
	}
	return client.New(cfg, client.Options{Scheme: scheme})
}
