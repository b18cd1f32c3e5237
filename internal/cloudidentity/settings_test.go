package cloudidentity_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/clouds"
)

const (
	amazonHost = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
	chinaHost  = "123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn"
	dualHost   = "123456789012.dkr-ecr.us-east-1.on.aws"
	publicHost = "public.ecr.aws"
	azureHost  = "acme.azurecr.io"
	googleHost = "europe-docker.pkg.dev"

	azureUser  = "00000000-0000-0000-0000-000000000000"
	googleUser = "oauth2accesstoken"
)

// resource is a repository of a host.
type resource string

func (r resource) String() string      { return string(r) + "/acme/pkg" }
func (r resource) RegistryStr() string { return string(r) }

// setting is the environment of a process with an identity.
type setting struct {
	name    string
	machine string
	env     map[string]string
	// files and programs are in the home folder, which HOME stands for.
	files, programs map[string]string
	hosts           []string
	user            string
}

const (
	federated = "HOME/token"
	adc       = `{"type":"authorized_user","client_id":"me","client_secret":"x","refresh_token":"` + clouds.Secret + `"}`
)

var token = map[string]string{"token": clouds.ServiceAccount + "\n"}

var settings = []setting{
	{
		name:  "keys of Amazon",
		env:   map[string]string{"AWS_ACCESS_KEY_ID": clouds.KeyID, "AWS_SECRET_ACCESS_KEY": clouds.SecretKey},
		hosts: []string{amazonHost, chinaHost, dualHost, publicHost}, user: "AWS",
	},
	{
		name: "EKS, role of a ServiceAccount", files: token,
		env:   map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": federated, "AWS_ROLE_ARN": "arn:aws:iam::1:role/xpkg"},
		hosts: []string{amazonHost, chinaHost, dualHost, publicHost}, user: "AWS",
	},
	{
		name: "EKS, pod identity", files: token,
		env: map[string]string{
			"AWS_CONTAINER_CREDENTIALS_FULL_URI":     "http://169.254.170.23/v1/credentials",
			"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": federated,
		},
		hosts: []string{amazonHost}, user: "AWS",
	},
	{name: "machine of Amazon", machine: "amazon", hosts: []string{amazonHost, publicHost}, user: "AWS"},
	{
		name: "AWS CLI", hosts: []string{amazonHost}, user: "AWS",
		programs: map[string]string{
			"aws": `{"Version":1,"AccessKeyId":"` + clouds.KeyID + `","SecretAccessKey":"` + clouds.SecretKey + `"}`,
		},
	},
	{
		name: "AKS, workload identity", files: token, hosts: []string{azureHost}, user: azureUser,
		env: map[string]string{
			"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "app", "AZURE_FEDERATED_TOKEN_FILE": federated,
		},
	},
	{
		name: "secret of Azure", hosts: []string{azureHost}, user: azureUser,
		env: map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "app", "AZURE_CLIENT_SECRET": clouds.Secret},
	},
	{name: "machine of Azure", machine: "azure", hosts: []string{azureHost}, user: azureUser},
	{
		name: "Azure CLI", hosts: []string{azureHost}, user: azureUser,
		programs: map[string]string{"az": `{"accessToken":"` + clouds.Entra + `"}`},
	},
	{name: "GKE and machine of Google", machine: "google", hosts: []string{googleHost, "gcr.io"}, user: googleUser},
	{
		name: "file of Google", hosts: []string{googleHost}, user: googleUser, files: map[string]string{"adc.json": adc},
		env: map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "HOME/adc.json"},
	},
	{
		name: "gcloud", hosts: []string{googleHost}, user: googleUser,
		files: map[string]string{".config/gcloud/application_default_credentials.json": adc},
	},
}

// apply makes the environment of a test that of a setting.
func (s setting) apply(t *testing.T) {
	t.Helper()
	home := clouds.ClearEnvironment(t)
	write := func(name, content string, mode os.FileMode) {
		path := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), mode)); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range s.files {
		write(name, content, 0o600)
	}
	for name, output := range s.programs {
		write(name, "#!/bin/sh\necho '"+output+"'\n", 0o700)
	}
	for name, value := range s.env {
		t.Setenv(name, strings.ReplaceAll(value, "HOME", home))
	}
}
