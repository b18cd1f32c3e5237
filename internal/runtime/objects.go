package runtime

import "github.com/xpkg-dev/xpkg/internal/runtime/manifests"

// Manifests returns the objects of a runtime in a cluster.
func Manifests(p Workload) (manifests.Objects, error) {
	return manifests.Build(manifests.Input{
		Owner: p.Owner, Namespace: p.Namespace, Image: p.Image(), External: p.External, PullPolicy: p.PullPolicy,
		PullSecrets:     p.PullSecrets,
		TLSServerSecret: p.ServerSecret, TLSClientSecret: p.ClientSecret, Certificates: p.Certificates,
		Restart: p.Restart, ExplainsExit: p.ExplainsExit,
		AwaitingActivation: p.AwaitingActivation, Settle: p.Settle, Config: p.Config,
	})
}

// AccountName returns the name of the ServiceAccount of a runtime.
func AccountName(p Workload) (string, error) {
	o, err := Manifests(p)
	return o.ServiceAccountName, err
}
