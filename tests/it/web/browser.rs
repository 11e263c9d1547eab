//! A browser without scripts: it keeps cookies, sends forms as browsers do, and follows nothing by itself.

use crate::api::served::{Answered, Served};
use reqwest::header::{COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use reqwest::{Method, RequestBuilder};

pub struct Browser<'s> {
    served: &'s Served,
    pub cookie: Option<String>,
    /// Whether it is on another machine: what the tests' own user may do here counts for nothing.
    is_elsewhere: bool,
}

impl<'s> Browser<'s> {
    /// A browser of nobody, as behind a proxy.
    pub fn elsewhere(served: &'s Served) -> Self {
        Self { served, cookie: None, is_elsewhere: true }
    }

    /// The browser of the user who runs the daemon.
    pub fn here(served: &'s Served) -> Self {
        Self { served, cookie: None, is_elsewhere: false }
    }

    /// A browser that has signed in with the token of a user.
    pub fn of(served: &'s Served, user: &str) -> Self {
        let mut browser = Self::elsewhere(served);
        let answered = browser.sign_in("", &crate::api::served::token(user));
        assert_eq!(answered.status, 303, "{}", answered.text);
        browser
    }

    pub fn sign_in(&mut self, name: &str, password: &str) -> Answered {
        let answered = self.post("/sign-in", &[("name", name), ("password", password), ("to", "jobs")]);
        if let Some(cookie) = answered.headers.get(SET_COOKIE) {
            self.cookie = Some(cookie.to_str().unwrap().split(';').next().unwrap().to_owned());
        }
        answered
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.served.request_without_redirects(method, path);
        let request = if self.is_elsewhere { request.header("x-forwarded-for", "192.0.2.1") } else { request };
        match &self.cookie {
            Some(cookie) => request.header(COOKIE, cookie),
            None => request,
        }
    }

    pub fn get(&self, path: &str) -> Answered {
        self.served.send(self.request(Method::GET, path))
    }

    /// Sends a form as a page of ours does.
    pub fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answered {
        let request = self.request(Method::POST, path).header(ORIGIN, &self.served.url);
        self.served.send(form(request, fields))
    }
}

pub fn form(request: RequestBuilder, fields: &[(&str, &str)]) -> RequestBuilder {
    let mut url = reqwest::Url::parse("http://form/").unwrap();
    url.query_pairs_mut().extend_pairs(fields);
    let body = url.query().unwrap_or_default().to_owned();
    request.header("content-type", "application/x-www-form-urlencoded").body(body)
}

pub fn location(answered: &Answered) -> &str {
    answered.headers.get(LOCATION).map_or("", |location| location.to_str().unwrap())
}
