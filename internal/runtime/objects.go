package runtime

import "github.com/xpkg-dev/xpkg/internal/runtime/shape"

// Shape is what the program looks like in a cluster.
func Shape(p Program) (shape.Objects, error) {
	return shape.Build(shape.Input{
		Owner: p.Owner, Namespace: p.Namespace, Image: p.Image(), PullPolicy: p.PullPolicy, PullSecrets: p.PullSecrets,
		TLSServerSecret: p.ServerSecret, TLSClientSecret: p.ClientSecret, Certificates: p.Certificates, AwaitingActivation: p.AwaitingActivation, Config: p.Config,
	})
}

// AccountName is the ServiceAccount that the program runs as.
func AccountName(p Program) (string, error) {
	o, err := Shape(p)
	return o.ServiceAccountName, err
}
