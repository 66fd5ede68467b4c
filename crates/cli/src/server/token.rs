//! The token for the log: if other machines can connect, only pages that were opened with the token may use the log.
//!
//! The server makes a new token at each start and prints it with its addresses. A page that is opened with `?token=…` gets a
//! cookie and needs no token later. Programs send the token with each request, in
//! the URL or as `Authorization: Bearer TOKEN`.

use axum::http::{HeaderMap, HeaderValue, Uri, header};

use crate::failure::Failure;

/// The token's parameter in a URL.
const PARAMETER: &str = "token";

/// Random bytes of a token: too many to guess.
const BYTES: usize = 16;

#[derive(Debug)]
pub(crate) struct Token {
    text: String,
    /// The cookie's name. It contains the port, because all ports of a machine share their cookies.
    cookie: String,
    /// Whether the cookie may be sent over TLS only.
    secure: bool,
}

impl Token {
    /// A new token for the server at this port.
    pub(crate) fn random(port: u16, secure: bool) -> Result<Self, Failure> {
        let mut bytes = [0; BYTES];
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut bytes).map_err(|_| Failure::new("the system's random number generator failed"))?;
        let text = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { text, cookie: format!("rullama-{port}"), secure })
    }

    /// A URL of the server with the token.
    pub(crate) fn in_address(&self, url: &str) -> String {
        format!("{url}?{PARAMETER}={}", self.text)
    }

    /// Whether a request's URL has the token.
    pub(super) fn is_in(&self, uri: &Uri) -> bool {
        let query = uri.query().unwrap_or_default().as_bytes();
        form_urlencoded::parse(query).any(|(name, value)| name == PARAMETER && self.is(value.as_bytes()))
    }

    /// Whether a request has the token in its URL, its headers or its cookies.
    pub(super) fn allows(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let texts = |name| headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        let bearer = texts(header::AUTHORIZATION).filter_map(|value| value.strip_prefix("Bearer "));
        let cookies = texts(header::COOKIE).flat_map(|value| value.split(';'));
        let cookies = cookies.filter_map(|cookie| cookie.trim().split_once('='));
        let cookies = cookies.filter(|(name, _)| *name == self.cookie).map(|(_, value)| value);
        self.is_in(uri) || bearer.chain(cookies).any(|given| self.is(given.as_bytes()))
    }

    /// The cookie for a page that was opened with the token. Scripts can't read it, and requests from other sites do not
    /// carry it.
    pub(super) fn cookie(&self) -> Option<HeaderValue> {
        let secure = if self.secure { "; Secure" } else { "" };
        let text = format!("{}={}; Path=/; HttpOnly; SameSite=Strict{secure}", self.cookie, self.text);
        HeaderValue::from_str(&text).ok()
    }

    /// Compares in constant time, so that the time does not reveal the first difference.
    fn is(&self, given: &[u8]) -> bool {
        let own = self.text.as_bytes();
        let differences = own.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
        own.len() == given.len() && differences == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_found_wherever_it_is_given() {
        let token = Token::random(11435, true).unwrap();
        let secret = token.text.clone();
        let allows = |uri: &str, name: header::HeaderName, value: &str| {
            let headers = HeaderMap::from_iter([(name, value.parse().unwrap())]);
            token.allows(&uri.parse().unwrap(), &headers)
        };
        assert!(allows(&format!("/api/log?tag=a&token={secret}"), header::ACCEPT, "*/*"));
        assert!(allows("/api/log", header::AUTHORIZATION, &format!("Bearer {secret}")));
        assert!(allows("/api/log", header::COOKIE, &format!("a=b; rullama-11435={secret}")));
        let own = token.cookie().unwrap();
        let own = own.to_str().unwrap();
        assert!(own.contains("; HttpOnly; SameSite=Strict; Secure"), "{own}");
        assert!(allows("/api/log", header::COOKIE, own.split(';').next().unwrap()));

        let other = Token::random(11435, true).unwrap().text;
        assert_eq!((secret.len(), other.len()), (32, 32));
        assert_ne!(secret, other);
        for wrong in ["", &other, &secret[1..], &format!("{secret}0")] {
            assert!(!allows(&format!("/api/log?token={wrong}"), header::ACCEPT, "*/*"));
            assert!(!allows("/api/log", header::AUTHORIZATION, &format!("Bearer {wrong}")));
            assert!(!allows("/api/log", header::COOKIE, &format!("rullama-11435={wrong}")));
        }
        assert!(!allows("/api/log", header::COOKIE, &format!("rullama-11436={secret}")));
        assert!(!allows("/api/log", header::AUTHORIZATION, &secret));
    }
}
