package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/crds"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Reader reads the facts of a cluster.
type Reader struct {
	Config *rest.Config
	// Client knows the kinds of packages and of the API groups that are read.
	Client client.Client
	// Frontend is the API whose objects use packages, or nil.
	Frontend  *frontend.API
	Namespace string
	Now       func() time.Time
	// Code returns the code that is the reason of a condition, and false if the reason is no code.
	Code func(reason string) (errcode.Code, bool)
	// Ping connects to a registry.
	Ping func(ctx context.Context, host string) error
}

// Read reads the facts. It writes nothing but reviews of permissions, which the API server does not store.
// Facts that the user is not allowed to read are listed in Facts.Unread.
func (r Reader) Read(ctx context.Context) (Facts, error) {
	f := Facts{Namespace: r.Namespace, Now: r.Now(), Unread: map[string]string{}}
	for _, part := range []struct {
		read   func(context.Context, *Facts) error
		checks []string
	}{
		{r.readServer, []string{server}},
		{r.readPermissions, []string{permissions}},
		{r.readCores, []string{cores}},
		{r.readLeases, []string{managers}},
		{r.readFence, []string{runtimeFence}},
		{r.readConsents, []string{consents}},
		{r.readFormerRuntimes, []string{formerRuntimes}},
		{r.readDefinitions, []string{managers, packageAPI}},
		{r.readWebhooks, []string{webhooks}},
		{r.readPackages, []string{packages, registries}},
		{r.readFirstGeneration, []string{firstGeneration}},
		{r.readEscalation, []string{escalation}},
		{r.readXRDs, []string{composites}},
	} {
		err := part.read(ctx, &f)
		switch {
		case apierrors.IsForbidden(err):
			for _, check := range part.checks {
				f.Unread[check] = err.Error()
			}
		case err != nil:
			return f, err
		}
	}
	return f, nil
}

func (r Reader) readServer(_ context.Context, f *Facts) error {
	d, err := discovery.NewDiscoveryClientForConfig(r.Config)
	if err != nil {
		return err
	}
	version, err := d.ServerVersion()
	if err != nil {
		return err
	}
	f.Version = version.GitVersion
	f.Minor, _ = strconv.Atoi(strings.TrimRight(version.Minor, "+"))
	return nil
}

// written are the resources that `xpkg bootstrap --apply` writes.
var written = []struct {
	group, resource string
	namespaced      bool
}{
	{"", "namespaces", false},
	{"", "serviceaccounts", true},
	{"", "services", true},
	{"apiextensions.k8s.io", "customresourcedefinitions", false},
	{"rbac.authorization.k8s.io", "clusterroles", false},
	{"rbac.authorization.k8s.io", "clusterrolebindings", false},
	{"rbac.authorization.k8s.io", "roles", true},
	{"rbac.authorization.k8s.io", "rolebindings", true},
	{"admissionregistration.k8s.io", "validatingadmissionpolicies", false},
	{"admissionregistration.k8s.io", "validatingadmissionpolicybindings", false},
	{"policy", "poddisruptionbudgets", true},
	{"networking.k8s.io", "networkpolicies", true},
	{"apps", "deployments", true},
}

func (r Reader) readPermissions(ctx context.Context, f *Facts) error {
	for _, verb := range []string{"create", "patch"} {
		for _, w := range written {
			attributes := &authorizationv1.ResourceAttributes{Verb: verb, Group: w.group, Resource: w.resource}
			if w.namespaced {
				attributes.Namespace = r.Namespace
			}
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: attributes,
			}}
			if err := r.Client.Create(ctx, review); err != nil {
				return err
			}
			if !review.Status.Allowed {
				f.Lacking = append(f.Lacking, verb+" "+w.resource)
			}
		}
	}
	return nil
}

// readCores reads the cores of all namespaces: the manager itself checks its own namespace only.
func (r Reader) readCores(ctx context.Context, f *Facts) error {
	var all appsv1.DeploymentList
	if err := r.Client.List(ctx, &all, client.MatchingFields{"metadata.name": crossplane.DeploymentName}); err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	for _, d := range all.Items {
		core, err := crossplane.ReadCore(ctx, r.Client, r.Client, d.Namespace)
		if err != nil {
			return fmt.Errorf("read Crossplane core in the namespace %s: %w", d.Namespace, err)
		}
		f.Cores = append(f.Cores, core)
	}
	return nil
}

func (r Reader) readLeases(ctx context.Context, f *Facts) error {
	var all coordinationv1.LeaseList
	if err := r.Client.List(ctx, &all, client.MatchingFields{"metadata.name": leader.DefaultLease}); err != nil {
		return fmt.Errorf("list Leases: %w", err)
	}
	for _, l := range all.Items {
		if l.Spec.HolderIdentity == nil || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
			continue
		}
		f.Leases = append(f.Leases, Lease{
			Namespace: l.Namespace, Holder: *l.Spec.HolderIdentity,
			Expires: l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second),
		})
	}
	return nil
}

// readChoice reads how the manager runs runtimes. It returns false if no manager has announced that: those of former
// versions do not.
func (r Reader) readChoice(ctx context.Context) (choice runtime.Choice, announced bool, err error) {
	var lock v1beta1.Lock
	if err := r.Client.Get(ctx, client.ObjectKey{Name: v1beta1.LockName}, &lock); client.IgnoreNotFound(err) != nil &&
		!meta.IsNoMatchError(err) {
		return runtime.Choice{}, false, fmt.Errorf("read the Lock: %w", err)
	}
	choice, err = runtime.ParseChoice(lock.Annotations[runtime.AnnotationChoice], runtime.None)
	return choice, err == nil, nil
}

// readFence reads whether the manager starts runtimes, and the policy for runtimes and its binding. An API server
// without policies has none.
func (r Reader) readFence(ctx context.Context, f *Facts) error {
	choice, announced, err := r.readChoice(ctx)
	if err != nil {
		return err
	}
	f.WithoutRuntimes = announced &&
		!slices.ContainsFunc(runtime.Names(), func(n runtime.Name) bool { return n != runtime.None && choice.Uses(n) })
	key := client.ObjectKey{Name: fence.RuntimesName}
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	for _, o := range []client.Object{policy, binding} {
		err := r.Client.Get(ctx, key, o)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the fence of runtimes: %w", err)
		}
	}
	f.Fenced, f.FenceChanged = true, !fence.IsRuntimes(r.Namespace, policy, binding)
	return nil
}

// readConsents reads the policy for consents.
func (r Reader) readConsents(ctx context.Context, f *Facts) (err error) {
	if f.ConsentGap, err = consent.CheckTransactions(ctx, r.Client); err != nil {
		return fmt.Errorf("read the policy for consents: %w", err)
	}
	return nil
}

// readFormerRuntimes reads the Deployments that a manager made for packages whose runtimes it does not run as
// Deployments any more. It stops them only if it still runs other runtimes as Deployments.
func (r Reader) readFormerRuntimes(ctx context.Context, f *Facts) error {
	choice, announced, err := r.readChoice(ctx)
	if err != nil || !announced {
		return err
	}
	var all appsv1.DeploymentList
	if err := r.Client.List(ctx, &all); err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	for _, d := range all.Items {
		kind, name := r.runtimeOf(d)
		if kind == "" {
			continue
		}
		if chosen := choice.Of(kind, name); chosen != runtime.Deployment {
			owner := metav1.GetControllerOf(&d)
			f.FormerRuntimes = append(f.FormerRuntimes, FormerRuntime{
				Namespace: d.Namespace, Deployment: d.Name, Owner: v1.ObjectName(owner.Kind, owner.Name), Chosen: chosen,
			})
		}
	}
	return nil
}

// runtimeOf returns the kind and the name of the package whose runtime is a Deployment that a manager wrote, or "". An
// object of an API has the runtime of a Provider without a name.
func (r Reader) runtimeOf(d appsv1.Deployment) (kind, name string) {
	owner := metav1.GetControllerOf(&d)
	if owner == nil || d.Annotations[plan.ContentDigestAnnotation] == "" || d.Spec.Selector == nil {
		return "", ""
	}
	switch owner.Kind {
	case v1.RevisionKind(v1.ProviderKind):
		return v1.ProviderKind, d.Spec.Selector.MatchLabels[v1.LabelProvider]
	case v1.RevisionKind(v1.FunctionKind):
		return v1.FunctionKind, d.Spec.Selector.MatchLabels[v1.LabelFunction]
	}
	if r.Frontend.KindNamed(owner.Kind) != "" {
		return v1.ProviderKind, ""
	}
	return "", ""
}

func (r Reader) readDefinitions(ctx context.Context, f *Facts) error {
	own, err := crds.Packages()
	if err != nil {
		return err
	}
	set, err := desired.Definitions(own)
	if err != nil {
		return err
	}
	var all apiextensionsv1.CustomResourceDefinitionList
	if err := r.Client.List(ctx, &all); err != nil {
		return fmt.Errorf("list CRDs: %w", err)
	}
	live := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for i := range all.Items {
		d := &all.Items[i]
		live[d.Name] = d
	}
	for _, want := range set.Desired() {
		d := Definition{Name: want.Ref.Name}
		if crd := live[d.Name]; crd != nil {
			digest := crd.Annotations[plan.ContentDigestAnnotation]
			d.Exists, d.IsOwn, d.IsCurrent = true, digest != "", digest == want.Digest
		}
		f.Definitions = append(f.Definitions, d)
	}
	return nil
}

func (r Reader) readWebhooks(ctx context.Context, f *Facts) error {
	var validating admissionv1.ValidatingWebhookConfigurationList
	var mutating admissionv1.MutatingWebhookConfigurationList
	if err := r.Client.List(ctx, &validating); err != nil {
		return fmt.Errorf("list ValidatingWebhookConfigurations: %w", err)
	}
	if err := r.Client.List(ctx, &mutating); err != nil {
		return fmt.Errorf("list MutatingWebhookConfigurations: %w", err)
	}
	var slicesOf discoveryv1.EndpointSliceList
	if err := r.Client.List(ctx, &slicesOf); err != nil {
		return fmt.Errorf("list EndpointSlices: %w", err)
	}
	ready := readyEndpoints(slicesOf.Items)
	add := func(configuration, name string, c admissionv1.WebhookClientConfig, policy *admissionv1.FailurePolicyType) {
		if c.Service == nil {
			return
		}
		service := c.Service.Namespace + "/" + c.Service.Name
		f.Webhooks = append(f.Webhooks, Webhook{
			Configuration: configuration, Name: name, Service: service, Endpoints: ready[service],
			Blocks: policy == nil || *policy == admissionv1.Fail,
		})
	}
	for _, c := range validating.Items {
		for _, w := range c.Webhooks {
			add("validatingwebhookconfiguration "+c.Name, w.Name, w.ClientConfig, w.FailurePolicy)
		}
	}
	for _, c := range mutating.Items {
		for _, w := range c.Webhooks {
			add("mutatingwebhookconfiguration "+c.Name, w.Name, w.ClientConfig, w.FailurePolicy)
		}
	}
	return nil
}

// readyEndpoints returns the number of ready endpoints of each Service.
func readyEndpoints(all []discoveryv1.EndpointSlice) map[string]int {
	out := map[string]int{}
	for _, s := range all {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				out[s.Namespace+"/"+s.Labels[discoveryv1.LabelServiceName]]++
			}
		}
	}
	return out
}

// readPackages reads the installed packages, and connects to their registries. A cluster without the package
// API has none.
func (r Reader) readPackages(ctx context.Context, f *Facts) error {
	var hosts []string
	for _, kind := range v1.PackageKinds() {
		list := v1.NewPackageList(kind)
		err := r.Client.List(ctx, list)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("list packages: %w", err)
		}
		for _, p := range list.Packages() {
			f.Packages = append(f.Packages, r.packageOf(p, state.ResumeCommand(kind, p.GetName())))
			image := cmp.Or(p.PackageStatus().ResolvedPackage, p.PackageSpec().Package)
			if ref, err := oci.ParseReference(image, oci.ParseOptions{}); err == nil && !slices.Contains(hosts, ref.Registry) {
				hosts = append(hosts, ref.Registry)
			}
		}
	}
	f.Registries = r.pingAll(ctx, hosts)
	return nil
}

// readFirstGeneration reads the objects of the first generation. A cluster without its API has none.
func (r Reader) readFirstGeneration(ctx context.Context, f *Facts) error {
	for _, k := range r.Frontend.GroupVersionKinds() {
		all, err := r.Frontend.List(ctx, r.Client, k.Kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, o := range all {
			p := r.packageOf(o, o.Command("annotate", v1.AnnotationPaused+"-"))
			if p.Namespace = o.GetNamespace(); o.IsInstall && o.Provider == "" {
				p.Describe = o.Command("describe")
			}
			p.Waiting = p.Waiting || o.Progresses
			f.FirstGeneration = append(f.FirstGeneration, p)
		}
	}
	return nil
}

// packageOf returns the facts of a package, or of an object of an API, whose reconciliation a command resumes.
func (r Reader) packageOf(p frontend.Resource, resume string) Package {
	if !v1.IsPaused(p) || p.GetDeletionTimestamp() != nil {
		resume = ""
	}
	c := p.GetCondition(v1.TypeReady)
	code, _ := r.Code(string(c.Reason))
	progresses := slices.Contains([]v1.ConditionReason{
		v1.ReasonProgressing, runtime.ReasonStarting, runtime.ReasonNotReported, runtime.ReasonWaiting,
	}, c.Reason)
	return Package{
		Kind: p.PackageKind(), Name: p.GetName(), Ready: c.Status == "True", Reason: string(c.Reason), Message: c.Message,
		Fix:     code.Fix,
		Waiting: progresses || c.Reason == v1.ReasonInactive || code.Approval || code.Name == graph.ErrDependencyComing.Name,
		Resume:  resume,
	}
}

// pingTimeout limits the time for all registries.
const pingTimeout = 10 * time.Second

// pingAll connects to registries concurrently.
func (r Reader) pingAll(ctx context.Context, hosts []string) []Registry {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	slices.Sort(hosts)
	out := make([]Registry, len(hosts))
	var group errgroup.Group
	for i, host := range hosts {
		group.Go(func() error {
			out[i].Host = host
			// A registry that requires credentials responds.
			if err := r.Ping(ctx, host); err != nil && !errors.Is(err, remote.ErrUnauthorized) {
				out[i].Error = err.Error()
			}
			return nil
		})
	}
	_ = group.Wait() // Each registry has its own error.
	return out
}

// readEscalation reads the verbs of the manager with which it can grant any permission.
func (r Reader) readEscalation(ctx context.Context, f *Facts) error {
	manager := types.NamespacedName{Namespace: r.Namespace, Name: bootstrap.Name}
	for _, verb := range []string{"escalate", "bind"} {
		may, err := r.review(ctx, manager, authorizationv1.ResourceAttributes{
			Group: rbacv1.GroupName, Resource: "clusterroles", Verb: verb,
		})
		if err != nil {
			return err
		}
		if may {
			f.Escalation = append(f.Escalation, verb)
		}
	}
	return nil
}

// review reports whether a ServiceAccount may take an action.
func (r Reader) review(
	ctx context.Context, account types.NamespacedName, action authorizationv1.ResourceAttributes,
) (bool, error) {
	const accounts = "system:serviceaccounts"
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   crossplane.UserName(account),
		Groups: []string{accounts, accounts + ":" + account.Namespace, "system:authenticated"}, ResourceAttributes: &action,
	}}
	err := r.Client.Create(ctx, review)
	return review.Status.Allowed, err
}
