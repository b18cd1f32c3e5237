// Package fromcore moves the packages that Crossplane core manages to the manager. Core stays and composes resources.
//
// The manager adopts the revisions, the objects and the runtimes of core. Package revision names the revisions that it
// keeps, and package deployment the Deployments.
package fromcore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/rollout"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// fieldManager is the field manager of the settings of core.
const fieldManager = client.FieldOwner("xpkg-migrate")

// Migration moves the packages of a cluster.
type Migration struct {
	// Config is the configuration of the user, and Client a client for all kinds that the migration reads.
	Config *rest.Config
	Client client.Client
	// Content looks up the tags of packages for the plan.
	Content state.Content
	// Manager are the options of the manager to install. Its namespace is the one of core.
	Manager bootstrap.Options
}

// Plan reads the cluster and plans the migration. It fails with MigrationRefused if something cannot be moved, and with
// CrossplaneNotFound if core is not in the namespace of the manager.
func (m *Migration) Plan(ctx context.Context) (*migration.Plan, error) {
	s, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	if err := migration.Refuse(s.findings()); err != nil {
		return nil, err
	}
	m.forecast(ctx, s)
	m.Manager.CoreAccounts = nil
	manifests, err := bootstrap.Manifests(m.Manager)
	if err != nil {
		return nil, err
	}
	return &migration.Plan{
		Steps: []*migration.Step{
			m.fenceStep(s), m.settingsStep(s), m.kindsStep(s), m.managerStep(s, manifests), m.packagesStep(s),
			m.definitionsStep(s),
		},
		Notes: m.notes(s),
	}, nil
}

// settingsStep makes core leave the packages to the manager.
func (m *Migration) settingsStep(s *snapshot) *migration.Step {
	step := &migration.Step{Title: "Configure Crossplane to leave packages to the manager", Done: true}
	for _, d := range s.coreDeployments() {
		changed := d.DeepCopy()
		changes := crossplane.LeavePackages(changed)
		missing, err := rollout.Missing(d)
		step.Done = step.Done && !changes && missing == "" && err == nil
		switch {
		case d.Name == crossplane.RBACDeploymentName && changes:
			step.Details = append(step.Details, fmt.Sprintf(
				"Deployment %s/%s gets no replicas: the manager grants the permissions of packages", d.Namespace, d.Name,
			))
		case changes:
			step.Details = append(step.Details, fmt.Sprintf(
				"Deployment %s/%s gets %s, and its pods are replaced; the runtimes of packages go on", d.Namespace, d.Name,
				crossplane.ExternalRuntime,
			))
		}
	}
	if len(step.Details) > 0 {
		step.Details = append(step.Details, "the annotation "+crossplane.AnnotationFormerSettings+
			" records the former settings")
	}
	step.Run = func(ctx context.Context, _ migration.Report) error {
		for _, d := range s.coreDeployments() {
			if err := retry.RetryOnConflict(
				retry.DefaultBackoff, func() error { return m.leavePackages(ctx, client.ObjectKeyFromObject(d)) },
			); err != nil {
				return err
			}
		}
		for _, d := range s.coreDeployments() {
			if err := migration.WaitRollout(ctx, m.Client, client.ObjectKeyFromObject(d)); err != nil {
				return err
			}
		}
		return nil
	}
	return step
}

// leavePackages changes the settings of a Deployment of core. It fails with a conflict if another client changes the
// Deployment meanwhile.
func (m *Migration) leavePackages(ctx context.Context, key client.ObjectKey) error {
	d := &appsv1.Deployment{}
	if err := m.Client.Get(ctx, key, d); err != nil {
		return fmt.Errorf("read Deployment %s: %w", key, err)
	}
	before := d.DeepCopy()
	if !crossplane.LeavePackages(d) {
		return nil
	}
	if err := m.Client.Patch(
		ctx, d, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldManager,
	); err != nil {
		return fmt.Errorf("change Deployment %s: %w", key, err)
	}
	return nil
}

// managerStep installs the manager. A manager that is already available keeps its settings.
func (m *Migration) managerStep(s *snapshot, manifests []bootstrap.Object) *migration.Step {
	step := &migration.Step{Title: "Install the manager"}
	if s.manager != nil {
		missing, err := rollout.Missing(s.manager)
		step.Done = missing == "" && err == nil
	}
	if !step.Done {
		for _, o := range manifests {
			if d, ok := o.(*appsv1.Deployment); ok {
				step.Details = append(step.Details, fmt.Sprintf("Deployment %s/%s with %s of %s", d.Namespace, d.Name,
					wording.Count(int(*d.Spec.Replicas), "replica"), d.Spec.Template.Spec.Containers[0].Image))
			}
		}
		step.Details = append(step.Details,
			"the CRDs of the package API become those of the manager; no object of them is lost",
			fmt.Sprintf("%s in all; `xpkg bootstrap` prints them", wording.Count(len(manifests), "object")))
	}
	step.Run = func(ctx context.Context, report migration.Report) error {
		if err := rollout.Apply(ctx, m.Client, manifests, func(name string) error {
			report(
				"applied %s", name,
			)
			return nil
		}); err != nil {
			return err
		}
		report("waiting for the manager")
		return migration.WaitRollout(ctx, m.Client, client.ObjectKey{Namespace: s.namespace, Name: bootstrap.Name})
	}
	return step
}

// notes returns the sentences about the settings that a user has to make permanent, and about permissions.
func (m *Migration) notes(s *snapshot) []string {
	var out []string
	if groups := s.ungrantable(m.Manager.PackageGroups); s.manager == nil && len(groups) > 0 {
		var flags []string
		for _, g := range groups {
			flags = append(flags, "--package-group "+g)
		}
		out = append(out,
			"The manager may not grant permissions on the resources of Providers and XRDs. Until you grant it the permissions that a package or an event of an XRD names (PermissionMissing), "+
				"both keep those that Crossplane gave them. To let the manager grant them, add "+strings.Join(flags, " ")+".")
	}
	values := "`xpkg bootstrap --beside-core --core-values`"
	if release := s.helmRelease(); release != "" {
		out = append(out,
			fmt.Sprintf("Crossplane was installed by the Helm release %s. Make its settings permanent with the chart that you use: "+
				"`xpkg bootstrap --beside-core --core-values | helm upgrade %s crossplane-stable/crossplane --version VERSION --namespace %s --reuse-values -f -`. "+
				"VERSION is that of the installed chart: without it, Helm also upgrades Crossplane. "+
				"An upgrade without these values would undo them; the manager then writes nothing until they are back.", release,
				release, s.namespace))
	} else {
		out = append(out, "Make the settings of Crossplane permanent where you deploy it from: "+values+
			" prints them as values of its Helm chart. "+
			"If they are undone, the manager writes nothing until they are back.")
	}
	if crossplane.InstallsPackages(s.core) {
		out = append(out,
			"Crossplane installs packages when it starts. Remove them from provider.packages, configuration.packages and function.packages of its chart: "+
				"the packages stay, and the manager would not let Crossplane write them.")
	}
	return append(out, "`xpkg migrate to-core` moves the packages back.")
}

// fenceStep denies core the writes of packages.
func (m *Migration) fenceStep(s *snapshot) *migration.Step {
	return &migration.Step{
		Title: "Deny Crossplane the writes of packages",
		Details: []string{
			fmt.Sprintf("ValidatingAdmissionPolicy %s for the ServiceAccount %s", crossplane.FenceName, s.account),
		},
		Done: s.fenced,
		Run: func(ctx context.Context, report migration.Report) error {
			// A fence may cover the accounts of further installations of core.
			accounts, err := crossplane.FencedAccounts(ctx, m.Client)
			if err != nil {
				return err
			}
			if !slices.Contains(accounts, s.account) {
				accounts = append(accounts, s.account)
			}
			if err := rollout.Apply(
				ctx, m.Client, bootstrap.CoreFence(accounts...), func(string) error { return nil },
			); err != nil {
				return err
			}
			return m.waitEnforced(ctx, s.account, report)
		},
	}
}
