package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/install"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Images reads the configurations of runtime images; fetch.Source implements it.
type Images interface {
	RuntimeConfig(ctx context.Context, o fetch.Origin, d oci.Digest, platform oci.Platform) (unpack.RuntimeConfig, error)
}

// runtime records whether the manager, whose configuration the Lock announces, refuses the runtime
// of the revision that becomes active.
func (pl *planning) runtime(
	ctx context.Context, s *clusterState, p v1.Package, pkg *xpkg.Package, t revision.Transition, digest oci.Digest,
	out *Plan,
) {
	if pkg.Meta.Annotations[xpkg.AnnotationTemplating] != "" && !revision.IsShared(p) {
		out.warn(
			"The package has templates. A Provider installs its CRDs only; a ClusterPackageInstall or PackageInstall also runs the templating controller.",
		)
	}
	out.WithoutRuntime = !s.hasRuntime(p, pkg)
	if err := pl.checkRuntime(ctx, s, p, pkg, t, digest, out); err != nil && !out.refuse(install.Runtime, err) {
		out.warn(fmt.Sprintf("Whether the runtime can run is not known: %v.", err))
	}
}

// runtimeConfig returns the origin of a package and the configuration of the runtime of its revision, or nil if it
// has none.
func (pl *planning) runtimeConfig(
	ctx context.Context, p v1.Package, rev v1.PackageRevision,
) (fetch.Origin, *v1beta1.DeploymentRuntimeConfig, error) {
	spec := p.PackageSpec()
	origin, route, err := pl.finder().Locate(ctx, spec.Package, spec.PackagePullSecrets, spec.PackagePullPolicy)
	if err != nil {
		return origin, nil, err
	}
	config, err := runtime.Config(ctx, pl.Reader, rev, route.Runtime)
	return origin, config, err
}

// runtimeConfigs are the runtime configurations of the running revision of a package, and of the one that the plan
// makes current.
type runtimeConfigs struct {
	running v1.PackageRevision
	was, is *v1beta1.DeploymentRuntimeConfig
}

// runtimeConfigs reads the runtime configurations before and after an update. It returns nil if no revision runs, or if
// a configuration cannot be read, which checkRuntime reports.
func (pl *planning) runtimeConfigs(
	ctx context.Context, s *clusterState, p v1.Package, t revision.Transition,
) *runtimeConfigs {
	i := slices.IndexFunc(t.Before, revision.IsActive)
	if s.live == nil || p.RuntimeSpec() == nil || i < 0 {
		return nil
	}
	out := &runtimeConfigs{running: t.Before[i]}
	var err error
	if _, out.was, err = pl.runtimeConfig(ctx, s.live, out.running); err != nil {
		return nil
	}
	if _, out.is, err = pl.runtimeConfig(ctx, p, t.Current); err != nil {
		return nil
	}
	return out
}

// account returns the name of the ServiceAccount of the runtime of a revision.
func (pl *planning) account(
	s *clusterState, p v1.Package, pkg *xpkg.Package, rev v1.PackageRevision, config *v1beta1.DeploymentRuntimeConfig,
) (string, error) {
	_, defaults, err := s.choiceOrDefault().Select(p, pkg.Meta)
	if err != nil {
		return "", err
	}
	return runtime.AccountName(runtime.Workload{
		Owner: revision.Requester(p, rev, nil), Namespace: pl.Namespace, Config: manifests.WithDefaults(config, defaults),
		External: true, // The name does not depend on the image.
	})
}

// choice returns how the manager runs runtimes, and false if a manager of an earlier version does not announce it.
func (s *clusterState) choice() (runtime.Choice, bool) {
	choice, err := runtime.ParseChoice(s.lock.Annotations[runtime.AnnotationChoice], runtime.None)
	return choice, err == nil
}

// choiceOrDefault is like choice. A manager that does not announce its configuration runs the runtimes of all packages
// as Deployments.
func (s *clusterState) choiceOrDefault() runtime.Choice {
	if choice, known := s.choice(); known {
		return choice
	}
	return runtime.Everywhere(runtime.Deployment)
}

// hasRuntime reports whether a package has a runtime that the manager or another system runs.
func (s *clusterState) hasRuntime(p v1.Package, pkg *xpkg.Package) bool {
	by, _, err := s.choiceOrDefault().Select(p, pkg.Meta)
	return err != nil || by != runtime.None
}

func (pl *planning) checkRuntime(
	ctx context.Context, s *clusterState, p v1.Package, pkg *xpkg.Package, t revision.Transition, digest oci.Digest,
	out *Plan,
) error {
	choice, known := s.choice()
	if !known || t.Activate != t.Current.GetName() {
		return nil
	}
	by, defaults, err := choice.Select(p, pkg.Meta)
	if err != nil || by != runtime.Process && by != runtime.Deployment {
		return err
	}
	origin, config, err := pl.runtimeConfig(ctx, p, t.Current)
	if err != nil {
		return err
	}
	config = manifests.WithDefaults(config, defaults)
	spec := t.Current.RuntimeSpec()
	workload := runtime.Workload{
		Owner: revision.Requester(p, t.Current, t.Before), Namespace: pl.Namespace, Origin: origin, Digest: digest,
		Config:     config,
		PullPolicy: p.PackageSpec().PackagePullPolicy, ServerSecret: ptr.Deref(spec.TLSServerSecretName, ""),
		ClientSecret: ptr.Deref(spec.TLSClientSecretName, ""),
	}
	if by == runtime.Deployment {
		// The nodes start Deployments.
		return pl.checkDeployment(ctx, s, workload, out)
	}
	objects, err := runtime.Manifests(workload)
	if err != nil {
		return err
	}
	if err := cmp.Or(objects.CheckProcess(), objects.CheckMetadata()); err != nil {
		return err
	}
	if err := pl.checkPrivileges(ctx, s, by, objects); err != nil {
		return err
	}
	if objects.NamesService() || *objects.Deployment.Spec.Replicas > 0 {
		if err := deployment.CheckService(ctx, pl.Reader, objects); err != nil {
			return err
		}
	}
	other := cmp.Or(manifests.ConfiguredImage(config), pkg.Meta.ControllerImage)
	if pl.Images == nil || other != "" || !revision.MayPull(p.PackageSpec().PackagePullPolicy) {
		// The manager resolves an image outside of the package.
		return nil
	}
	return choice.AdviseWithoutRuntime(pl.checkProgram(ctx, s, objects, origin, digest), p.PackageKind(), p.GetName())
}

// checkDeployment fails in the same cases as a manager that runs a workload as a Deployment, before it writes an object
// of the package. An error that is no refusal is that of a check that was not possible.
func (pl *planning) checkDeployment(ctx context.Context, s *clusterState, w runtime.Workload, out *Plan) error {
	objects, err := deployment.Manifests(w)
	if err != nil {
		return err
	}
	if err := cmp.Or(objects.CheckDeploymentMetadata(), objects.CheckMetadata()); err != nil {
		return err
	}
	if err := cmp.Or(
		pl.checkPrivileges(ctx, s, runtime.Deployment, objects), deployment.CheckService(ctx, pl.Reader, objects),
	); err != nil || pl.DryRun == nil {
		return err
	}
	// A revision that does not exist has no UID, and the API server accepts no owner without one.
	d := objects.Deployment
	d.OwnerReferences = slices.DeleteFunc(d.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == "" })
	err = (&deployment.Runtime{Client: pl.DryRun, Namespace: pl.Namespace}).CheckAccepted(ctx, objects)
	if err == nil {
		pl.warnOfPods(ctx, objects.Deployment, out)
		return nil
	}
	if _, refused := install.Find(install.Runtime, err); !refused {
		return fmt.Errorf("the API server was not asked whether it accepts the Deployment: %w", err)
	}
	return err
}

// warnOfPods adds a warning if the API server would refuse the pods of a Deployment that it accepts: because of Pod
// Security, a quota or limits of the namespace. A client that may not create pods gets none.
func (pl *planning) warnOfPods(ctx context.Context, d *appsv1.Deployment, out *Plan) {
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		return
	}
	template := d.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.GenerateName = d.Namespace, d.Name+"-"
	pod.Spec.ServiceAccountName = "" // It does not exist yet.
	err := pl.DryRun.Create(ctx, pod)
	if !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "cannot create resource") ||
		strings.Contains(err.Error(), "service account") {
		return
	}
	_, why, _ := strings.Cut(err.Error(), " is forbidden: ")
	out.warn(fmt.Sprintf(
		"The runtime cannot start in the namespace %s: the API server refuses its pods: %s. Change the namespace, or the pods with a DeploymentRuntimeConfig.",
		d.Namespace, why,
	))
}

// checkPrivileges fails with RuntimePrivileges in the same cases as the runtimes.
func (pl *planning) checkPrivileges(
	ctx context.Context, s *clusterState, by runtime.Name, objects manifests.Objects,
) error {
	var names []string
	if announced := s.lock.Annotations[runtime.AnnotationPrivileges]; announced != "" {
		names = strings.Split(announced, ",")
	}
	allowed, err := manifests.ParsePrivileges(names)
	if err != nil {
		return err
	}
	check := objects.CheckCertificates
	if by == runtime.Deployment {
		check = objects.CheckPrivileges
	}
	if err := check(allowed); err != nil {
		return err
	}
	return deployment.CheckServiceAccount(ctx, pl.Reader, pl.Namespace, objects, allowed)
}

// checkProgram fails with WrongPlatform if the image is not for the platform of the manager, and with NoProgram if
// neither the image nor the configuration names a program. Only the manager, which unpacks the image, can detect that
// the named program is missing from the image.
func (pl *planning) checkProgram(
	ctx context.Context, s *clusterState, objects manifests.Objects, origin fetch.Origin, digest oci.Digest,
) error {
	platform, unknown := oci.ParsePlatform(s.lock.Annotations[runtime.AnnotationPlatform])
	if unknown != nil {
		platform = oci.Platform{OS: "linux", Architecture: goruntime.GOARCH}
	}
	image, err := pl.Images.RuntimeConfig(ctx, origin, digest, platform)
	if errors.Is(err, unpack.ErrWrongPlatform) && unknown != nil {
		return nil // The manager may run on another platform.
	}
	if err != nil {
		return err
	}
	c := objects.Deployment.Spec.Template.Spec.Containers[0]
	_, err = runtime.CommandLine(objects.Owner.Revision.Name, digest, image, c.Command, c.Args)
	return err
}
