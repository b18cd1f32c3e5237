package cloudidentity

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
)

// cloud is a provider of registries and identities.
type cloud int

const (
	amazon cloud = iota
	azure
	google
)

// name returns the name of the cloud for messages.
func (c cloud) name() string { return [...]string{"AWS", "Azure", "Google Cloud"}[c] }

// advice returns what gives an identity of the cloud to a process.
func (c cloud) advice() string {
	return [...]string{
		"In EKS, give the ServiceAccount of the manager a role with the policy AmazonEC2ContainerRegistryPullOnly; " +
			"elsewhere, log in with `aws sso login` or set AWS_PROFILE.",
		"In AKS, give the ServiceAccount of the manager an identity with the role AcrPull, and its Pods the label " +
			"azure.workload.identity/use; elsewhere, log in with `az login`.",
		"In GKE, grant the ServiceAccount of the manager roles/artifactregistry.reader; " +
			"elsewhere, log in with `gcloud auth application-default login`.",
	}[c]
}

// registry is a registry of a cloud.
type registry struct {
	cloud cloud
	host  string
	// region, service and endpoint are those of the API of Amazon ECR that issues the tokens of the registry.
	region, service, endpoint string
}

// Hosts of registries. Each is exact and has no port: a host that only resembles one belongs to others.
const (
	label     = `[a-z0-9](?:[a-z0-9-]*[a-z0-9])?`
	awsRegion = `([a-z]{2}(?:-[a-z]+)+-[0-9]{1,2})`
)

var (
	ecrHost       = lazyregexp.New(`^[0-9]{12}\.dkr\.ecr\.` + awsRegion + `\.(amazonaws\.com(?:\.cn)?)$`)
	ecrDualStack  = lazyregexp.New(`^[0-9]{12}\.dkr-ecr\.` + awsRegion + `\.on\.aws$`)
	acrHost       = lazyregexp.New(`^(?:` + label + `\.)+azurecr\.(?:io|cn|us)$`)
	googleHost    = lazyregexp.New(`^(?:(?:` + label + `\.)+pkg\.dev|(?:` + label + `\.)*gcr\.io)$`)
	ecrPublicHost = "public.ecr.aws"
)

// registryAt returns the registry of a cloud at a host, and false for the hosts of others.
func registryAt(host string) (registry, bool) {
	if host == ecrPublicHost {
		const region = "us-east-1" // The only region in which the API issues tokens.
		return registry{amazon, host, region, "ecr-public", "https://api.ecr-public." + region + ".amazonaws.com"}, true
	}
	if m := ecrHost().FindStringSubmatch(host); m != nil {
		return registry{amazon, host, m[1], "ecr", fmt.Sprintf("https://api.ecr.%s.%s", m[1], m[2])}, true
	}
	if m := ecrDualStack().FindStringSubmatch(host); m != nil {
		return registry{amazon, host, m[1], "ecr", fmt.Sprintf("https://ecr.%s.api.aws", m[1])}, true
	}
	switch {
	case acrHost().MatchString(host):
		return registry{cloud: azure, host: host}, true
	case googleHost().MatchString(host):
		return registry{cloud: google, host: host}, true
	}
	return registry{}, false
}
