package runtime

import "github.com/xpkg-dev/xpkg/internal/runtime/manifests"

// Shape returns the objects of a runtime in a cluster.
func Shape(p Program) (manifests.Objects, error) {
	return manifests.Build(manifests.Input{
		Owner: p.Owner, Namespace: p.Namespace, Image: p.Image(), PullPolicy: p.PullPolicy, PullSecrets: p.PullSecrets,
		TLSServerSecret: p.ServerSecret, TLSClientSecret: p.ClientSecret, Certificates: p.Certificates, AwaitingActivation: p.AwaitingActivation, Settle: p.Settle, Config: p.Config,
	})
}

// AccountName is the ServiceAccount that the program runs as.
func AccountName(p Program) (string, error) {
	o, err := Shape(p)
	return o.ServiceAccountName, err
}
