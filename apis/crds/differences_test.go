package crds

// A difference is a place where our CRDs differ from upstream's on purpose. The fields are shell
// patterns, separated by "|".
type difference struct {
	// version of Crossplane that is compared with.
	version string
	// crd is the plural of the definition.
	crd string
	// change is our change: added, removed or changed.
	change string
	// at is the place, as flatten names it.
	at string

	reason string
}

const (
	newest        = "HEAD"
	packageKinds  = "providers|configurations|functions"
	revisionKinds = "providerrevisions|configurationrevisions|functionrevisions"
	podTemplate   = "v1beta1 .spec.deploymentTemplate.spec.template.spec"
)

var differences = []difference{
	{
		"*", packageKinds, "changed", "v1* .spec",
		"the rule for spec.package is on the spec, since it depends on spec.packagePullPolicy",
	},
	{
		"*", packageKinds, "changed", "v1* .spec.package",
		"the rule is on the spec, and needs a greatest length to have a bounded cost",
	},
	{
		"*", packageKinds, "changed", "v1* .spec.revisionActivationPolicy",
		"only Automatic and Manual have a meaning",
	},
	{
		newest, packageKinds, "added", "v1* .status.resolvedDigest",
		"the digest that the reference was resolved to, once",
	},
	{
		newest, packageKinds + "|" + revisionKinds, "added", "v1* .status.observedGeneration",
		"what kstatus, and so every GitOps tool, looks at first",
	},
	{
		"*", packageKinds, "changed", "v1* .status",
		"the default of observedGeneration: kstatus takes a package for ready that the manager has not seen yet",
	},
	{
		newest, packageKinds, "added", "v1* .status.customResources",
		"the custom resources that a deletion of the package would delete",
	},
	{
		newest, revisionKinds, "added", "v1* .status.kinds*",
		"how many kinds of a Provider are active, of those that its package offers",
	},
	{
		newest, packageKinds, "added", "v1* .status.activation*",
		"when the active revision was activated, and whether it has been healthy since",
	},
	{
		newest, packageKinds + "|" + revisionKinds, "added", "v1* .status.lastHandledRetry",
		"the last attempt that a user has requested with the annotation xpkg.dev/retry",
	},
	{
		newest, packageKinds, "added", "v1* .status.lastHealthyRevision",
		"the revision that is brought back when another one does not become healthy",
	},
	{
		newest, packageKinds, "added", "v1* .status.rollback*",
		"a revision that did not become healthy in time, and the one that was brought back",
	},
	{
		newest, revisionKinds, "added", "v1* .status.objectRefs[].generation",
		"distinguishes changes by other clients from our own",
	},
	{
		newest, "locks", "added", "v1beta1 .packages[].owns*",
		"which objects a package holds, so that conflicts are known before anything is written",
	},
	{
		newest, "locks", "added", "v1beta1 .packages[].optionalDependencies*",
		"what a package works with where it is there; among its dependencies other tools would take it for a need",
	},
	{
		newest, revisionKinds, "added", "v1* .status.absentOptionalDependencies*",
		"what a package would work with and is not there: something of it is off",
	},
	{
		newest, revisionKinds, "added", "v1* .spec.digest",
		"the content of the revision",
	},
	{
		newest, "providers|functions|providerrevisions|functionrevisions", "added", "v1* .spec.controllerConfigRef*",
		"packages guide, spec.controllerConfigRef; upstream removed it in v2",
	},
	{
		newest, revisionKinds, "added", "v1* .status.permissionRequests*",
		"packages guide, Provider Packages; upstream removed it in v2",
	},
	{
		newest, "providerrevisions|functionrevisions", "added", "v1* .status.runtimeImage",
		"the image of the runtime, with the digest that was resolved once",
	},
	{
		newest, revisionKinds, "added", "v1* .status.unapprovedPermissions*",
		"the permissions that a user has to approve before anything is installed",
	},
	{
		newest, revisionKinds, "added", "v1* .status.objectsToAdopt*",
		"the objects of users that a revision waits to adopt",
	},
	{
		newest, revisionKinds, "added", "v1* .status.unallowedWebhooks*",
		"the webhook rules outside of the package's own groups that a user has to allow before anything is installed",
	},
	{
		newest, "imageconfigs", "added",
		"v1beta1 .spec.registry.caBundle|v1beta1 .spec.registry.plainHTTP|v1beta1 .spec.registry.mirrors*",
		"access to a registry and its mirrors, which upstream has nothing for",
	},
	{
		newest, "imageconfigs", "added", "v1beta1 .spec.verification.cosign.trustedRoot*",
		"a trust root of one's own, which upstream has nothing for",
	},
	{
		"v2.3.4", "providerrevisions|functionrevisions", "*", "v1* column *",
		"upstream replaced RUNTIME by RUNTIME-HEALTHY and RUNTIME-ACTIVE in v2.4",
	},
	{
		"v1.20.11", revisionKinds, "*", "v1* column *",
		"upstream replaced HEALTHY by columns for revision and runtime in v2, and moved numbers to -o wide",
	},
	{
		newest, "deploymentruntimeconfigs", "added", podTemplate + ".*",
		"fields of pods that are newer than the Kubernetes that upstream builds with",
	},
	{
		"HEAD|v2.3.4", "deploymentruntimeconfigs", "removed", podTemplate + ".workloadRef*",
		"an alpha field that Kubernetes 1.36 and later replace by schedulingGroup",
	},
	{
		"*", "deploymentruntimeconfigs", "changed", podTemplate + ".imagePullSecrets[].name",
		"Kubernetes no longer requires the name, which has a default",
	},
	{
		"v1.14.0", "controllerconfigs", "changed", "v1alpha1 .spec.*",
		"list types and defaults that Kubernetes added to the fields of pods since; none differs from v1.20.11",
	},
	{
		"v1.14.0", "controllerconfigs", "removed",
		"v1alpha1 .spec.volumes[].ephemeral.volumeClaimTemplate.spec.resources.claims*",
		"Kubernetes removed claims from volumes, where they never had a meaning",
	},
}
