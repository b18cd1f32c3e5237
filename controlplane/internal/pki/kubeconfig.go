package pki

import (
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig for the client of the pair that needs no
// other file: certificates and key are in it, so it has mode 0600.
func WriteKubeconfig(path, server string, files Files, client Pair) error {
	ca, err := os.ReadFile(files.CA)
	if err != nil {
		return err
	}
	certificate, err := os.ReadFile(client.Certificate)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(client.Key)
	if err != nil {
		return err
	}
	const name = "xpkg"
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return Replace(path, content)
}
