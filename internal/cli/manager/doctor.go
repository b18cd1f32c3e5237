package manager

import (
	"errors"
	"fmt"
	"io"
	"slices"
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
	"github.com/xpkg-dev/xpkg/internal/cli/view"
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
	view.OutputFlag
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
	reader := doctor.Reader{
		Config: cfg, Client: cluster, Frontend: env.Frontend, Namespace: c.Namespace, Now: time.Now, Code: errcodes.Named,
		Ping: registries.Ping,
	}
	facts, err := reader.Read(env.Context)
	if err != nil {
		return apiserver.Classify(err, "read the state of the cluster")
	}
	findings := doctor.Check(facts)
	err = c.Print(env.Stdout, findings, func(w io.Writer) { writeFindings(w, findings) })
	if err != nil {
		return err
	}
	return doctor.Err(findings)
}

// writeFindings writes a table with a row for each cause, and below it the remedies, each once. The manifest in a
// message is left out: the remedy names the command that prints it.
func writeFindings(w io.Writer, findings []doctor.Finding) {
	all := make([]view.Finding, len(findings))
	for i, f := range findings {
		message, _, _ := strings.Cut(f.Message, "\n\n")
		all[i] = view.Finding{Subject: f.Subject, Text: message, Fix: f.Fix}
		if f.Cause != "" {
			all[i].Cause = string(f.Result) + f.Check + f.Cause
		}
	}
	var rows [][]string
	var fixes []string
	for _, c := range view.ByCause(all, view.Most(w)) {
		f := findings[c.Members[0]]
		rows = append(rows, []string{string(f.Result), f.Check, c.Text})
		if fix := f.Check + ": " + c.Fix; c.Fix != "" && !slices.Contains(fixes, fix) {
			fixes = append(fixes, fix)
		}
	}
	view.WriteTable(w, []string{"RESULT", "CHECK", "FINDING"}, rows)
	if len(fixes) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(fixes, "\n"))
	}
}

// clusterClient returns a client for the kinds that the commands of the manager read.
func clusterClient(cfg *rest.Config) (client.Client, error) {
	scheme, err := apis.NewScheme()
	if err != nil {
		return nil, err
	}
	err = errors.Join(admissionv1.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme), appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme),
		authorizationv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme),
		rbacv1.AddToScheme(scheme))
	if err != nil {
		return nil, err
	}
	return client.New(cfg, client.Options{Scheme: scheme})
}
