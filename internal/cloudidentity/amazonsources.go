package cloudidentity

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/aws/smithy-go/aws-http-auth/credentials"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// amazonKeys parses the JSON with keys of the AWS CLI, of a container or of a machine.
func amazonKeys(raw []byte, err error) (credentials.Credentials, error) {
	var keys struct{ AccessKeyId, SecretAccessKey, SessionToken, Token string }
	if err == nil {
		err = decode(raw, "response with the keys", &keys)
	}
	if err == nil && keys.AccessKeyId == "" {
		err = errors.New("the response contains no keys")
	}
	return credentials.Credentials{
		AccessKeyID: keys.AccessKeyId, SecretAccessKey: keys.SecretAccessKey,
		SessionToken: cmp.Or(keys.SessionToken, keys.Token),
	}, err
}

// amazonWebIdentity returns the credentials of a role for the token of a ServiceAccount (AWS STS API Reference,
// "AssumeRoleWithWebIdentity").
func (c clients) amazonWebIdentity(ctx context.Context, region string) (credentials.Credentials, error) {
	identity, err := readFile("AWS_WEB_IDENTITY_TOKEN_FILE")
	if err != nil {
		return credentials.Credentials{}, err
	}
	region = cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), region)
	domain := "amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain = "amazonaws.com.cn"
	}
	form := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "WebIdentityToken": {identity},
		"RoleArn": {os.Getenv("AWS_ROLE_ARN")}, "RoleSessionName": {cmp.Or(os.Getenv("AWS_ROLE_SESSION_NAME"), "xpkg")},
	}
	endpoint := amazonEndpoint("sts", fmt.Sprintf("https://sts.%s.%s", region, domain))
	body, err := postForm(ctx, c.public, endpoint, form)
	if err != nil {
		return credentials.Credentials{}, err
	}
	var answer struct {
		AccessKeyID     string `xml:"AssumeRoleWithWebIdentityResult>Credentials>AccessKeyId"`
		SecretAccessKey string `xml:"AssumeRoleWithWebIdentityResult>Credentials>SecretAccessKey"`
		SessionToken    string `xml:"AssumeRoleWithWebIdentityResult>Credentials>SessionToken"`
	}
	if xml.Unmarshal(body, &answer) != nil || answer.AccessKeyID == "" {
		return credentials.Credentials{}, errors.New("the response of AWS STS contains no credentials")
	}
	return credentials.Credentials{
		AccessKeyID: answer.AccessKeyID, SecretAccessKey: answer.SecretAccessKey,
		SessionToken: answer.SessionToken,
	}, nil
}

// containerAddress returns the address of the credentials of a container, of EKS Pod Identity or ECS, and "" if there
// is none (AWS SDKs and Tools Reference Guide, "Container credential provider").
func containerAddress() string {
	if path := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		return "http://169.254.170.2" + path
	}
	return os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
}

// containerAddresses are the addresses of the services of a node, which use HTTP without TLS.
var containerAddresses = map[string]bool{"169.254.170.2": true, "169.254.170.23": true, "fd00:ec2::23": true}

// amazonContainer returns the credentials of a container.
func (c clients) amazonContainer(ctx context.Context) (credentials.Credentials, error) {
	address, err := url.Parse(containerAddress())
	if err != nil {
		return credentials.Credentials{}, err
	}
	if host := address.Hostname(); address.Scheme != "https" && !containerAddresses[host] && !oci.IsLoopback(host) {
		return credentials.Credentials{}, fmt.Errorf("AWS_CONTAINER_CREDENTIALS_FULL_URI names %s without TLS", host)
	}
	authorization := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") != "" {
		if authorization, err = readFile("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); err != nil {
			return credentials.Credentials{}, err
		}
	}
	return amazonKeys(c.get(ctx, http.MethodGet, address.String(), "Authorization", authorization))
}

// amazonInstance returns the credentials of the role of a machine, with version 2 of its metadata service (Amazon EC2
// User Guide, "Use the Instance Metadata Service").
func (c clients) amazonInstance(ctx context.Context) (credentials.Credentials, error) {
	if strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		return credentials.Credentials{}, errors.New("AWS_EC2_METADATA_DISABLED is true")
	}
	host := "169.254.169.254"
	if strings.EqualFold(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"), "IPv6") {
		host = "[fd00:ec2::254]"
	}
	base := strings.TrimSuffix(cmp.Or(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "http://"+host), "/") + "/latest/"
	// A response to a container beyond the hop limit of the machine never arrives.
	hop, cancel := context.WithTimeout(ctx, metadataPatience)
	defer cancel()
	session, err := c.get(hop, http.MethodPut, base+"api/token", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "60")
	if err != nil {
		return credentials.Credentials{}, err
	}
	read := func(path string) ([]byte, error) {
		address := base + "meta-data/iam/security-credentials/" + path
		return c.get(ctx, http.MethodGet, address, "X-Aws-Ec2-Metadata-Token", string(session))
	}
	role, err := read("")
	if err != nil {
		return credentials.Credentials{}, fmt.Errorf("the machine has no role: %w", err)
	}
	name, _, _ := strings.Cut(strings.TrimSpace(string(role)), "\n")
	return amazonKeys(read(url.PathEscape(name)))
}
