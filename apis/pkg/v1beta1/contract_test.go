package v1beta1_test

import (
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// Crossplane core, its command line and GitOps tools read these names.
func TestNamesThatOtherProgramsRead(t *testing.T) {
	for name, constant := range map[string]string{
		"Installed":       string(v1.TypeInstalled),
		"Healthy":         string(v1.TypeHealthy),
		"RevisionHealthy": string(v1.TypeRevisionHealthy),
		"RuntimeHealthy":  string(v1.TypeRuntimeHealthy),
		"RuntimeActive":   string(v1.TypeRuntimeActive),
		"Synced":          string(v1.TypeSynced),
		"Resolved":        string(v1beta1.TypeResolved),

		"UnpackingPackage":              string(v1.ReasonUnpacking),
		"InactivePackageRevision":       string(v1.ReasonInactive),
		"ActivePackageRevision":         string(v1.ReasonActive),
		"UnhealthyPackageRevision":      string(v1.ReasonUnhealthy),
		"HealthyPackageRevision":        string(v1.ReasonHealthy),
		"UnknownPackageRevisionHealth":  string(v1.ReasonUnknownHealth),
		"ActiveRuntime":                 string(v1.ReasonActiveRuntime),
		"AwaitingActivation":            string(v1.ReasonAwaitingActivation),
		"ReconcileSuccess":              string(v1.ReasonSynced),
		"ReconcilePaused":               string(v1.ReasonPaused),
		"DependencyResolutionSucceeded": string(v1beta1.ReasonResolutionSucceeded),
		"DependencyResolutionFailed":    string(v1beta1.ReasonResolutionFailed),

		"SetImagePullSecret": string(v1.ImageConfigReasonPullSecret),
		"VerifyImage":        string(v1.ImageConfigReasonVerify),
		"RewriteImage":       string(v1.ImageConfigReasonRewrite),
		"ConfigureRuntime":   string(v1.ImageConfigReasonRuntime),

		"pkg.crossplane.io/package":         v1.LabelPackage,
		"pkg.crossplane.io/provider-family": v1.LabelProviderFamily,
		"pkg.crossplane.io/provider":        v1.LabelProvider,
		"pkg.crossplane.io/function":        v1.LabelFunction,
		"pkg.crossplane.io/revision":        v1.LabelRevision,

		"crossplane.io/paused":       v1.AnnotationPaused,
		"revision.pkg.crossplane.io": v1.FinalizerRevision,
		"lock.pkg.crossplane.io":     v1beta1.FinalizerLock,
		"lock":                       v1beta1.LockName,
		"crossplane-root-ca":         v1.RootCASecretName,
		"default":                    v1.DefaultRuntimeConfigName,
	} {
		if constant != name {
			t.Errorf("%q is written in place of %q", constant, name)
		}
	}
}
