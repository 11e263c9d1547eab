//! The kinds of personal information that a request can name, and those that this service finds.

use crate::wire::languages::PII_ENTITIES;
use std::collections::BTreeSet;

macro_rules! entity_types {
    ($($variant:ident $name:literal $is_found:literal,)*) => {
        /// A kind of information that is redacted. Where two kinds cover the same words, the one that is named first
        /// here counts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EntityType {
            $($variant,)*
        }

        impl EntityType {
            /// All kinds, in the order of their weight.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name in requests and markers.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Whether there are rules that find it. The others need a model.
            pub fn is_found(self) -> bool {
                match self {
                    $(Self::$variant => $is_found,)*
                }
            }
        }
    };
}

entity_types! {
    CreditCard "CREDIT_CARD" true,
    CreditCardExpiration "CREDIT_CARD_EXPIRATION" true,
    Cvv "CVV" true,
    RoutingNumber "ROUTING_NUMBER" true,
    BankAccount "BANK_ACCOUNT" true,
    Ssn "SSN" true,
    PassportNumber "PASSPORT_NUMBER" true,
    DriverLicense "DRIVER_LICENSE" true,
    HealthcareNumber "HEALTHCARE_NUMBER" true,
    VehicleId "VEHICLE_ID" true,
    Password "PASSWORD" true,
    EmailAddress "EMAIL_ADDRESS" true,
    IpAddress "IP_ADDRESS" true,
    Filename "FILENAME" true,
    Url "URL" true,
    Username "USERNAME" true,
    OrganizationId "ORGANIZATION_ID" true,
    MedicalCode "MEDICAL_CODE" true,
    AccountNumber "ACCOUNT_NUMBER" true,
    PhoneNumber "PHONE_NUMBER" true,
    LocationCoordinate "LOCATION_COORDINATE" true,
    Money "MONEY" true,
    Dose "DOSE" true,
    Age "AGE" true,
    Dob "DOB" true,
    Date "DATE" true,
    DateInterval "DATE_INTERVAL" true,
    Time "TIME" true,
    Duration "DURATION" true,
    Year "YEAR" true,
    Month "MONTH" true,
    Day "DAY" true,
    LocationAddress "LOCATION_ADDRESS" true,
    LocationAddressStreet "LOCATION_ADDRESS_STREET" true,
    LocationZip "LOCATION_ZIP" true,
    LocationState "LOCATION_STATE" true,
    LocationCountry "LOCATION_COUNTRY" true,
    LocationCity "LOCATION_CITY" true,
    Location "LOCATION" true,
    NameMedicalProfessional "NAME_MEDICAL_PROFESSIONAL" true,
    Name "NAME" true,
    NameGiven "NAME_GIVEN" true,
    NameFamily "NAME_FAMILY" true,
    Language "LANGUAGE" true,
    Origin "ORIGIN" true,
    Religion "RELIGION" true,
    ZodiacSign "ZODIAC_SIGN" true,
    MaritalStatus "MARITAL_STATUS" true,
    Gender "GENDER" true,
    Sexuality "SEXUALITY" true,
    PoliticalAffiliation "POLITICAL_AFFILIATION" true,
    BloodType "BLOOD_TYPE" true,
    NumericalPii "NUMERICAL_PII" true,
    Condition "CONDITION" false,
    CorporateAction "CORPORATE_ACTION" false,
    Drug "DRUG" false,
    Effect "EFFECT" false,
    Event "EVENT" false,
    FinancialMetric "FINANCIAL_METRIC" false,
    Injury "INJURY" false,
    MedicalProcess "MEDICAL_PROCESS" false,
    Occupation "OCCUPATION" false,
    Organization "ORGANIZATION" false,
    OrganizationMedicalFacility "ORGANIZATION_MEDICAL_FACILITY" false,
    PhysicalAttribute "PHYSICAL_ATTRIBUTE" false,
    Product "PRODUCT" false,
    Project "PROJECT" false,
    Statistics "STATISTICS" false,
    Trend "TREND" false,
}

use EntityType as E;

/// Names, addresses and numbers that identify a person by themselves.
const IDENTIFIERS: &[E] = &[
    E::Name,
    E::NameGiven,
    E::NameFamily,
    E::NameMedicalProfessional,
    E::EmailAddress,
    E::PhoneNumber,
    E::LocationAddress,
    E::LocationAddressStreet,
    E::LocationZip,
    E::LocationCoordinate,
    E::Dob,
    E::Ssn,
    E::PassportNumber,
    E::DriverLicense,
    E::HealthcareNumber,
    E::VehicleId,
    E::AccountNumber,
    E::BankAccount,
    E::CreditCard,
    E::IpAddress,
    E::Url,
    E::Username,
    E::Password,
    E::NumericalPii,
];

const CARD_DATA: &[E] = &[E::CreditCard, E::CreditCardExpiration, E::Cvv, E::BankAccount, E::RoutingNumber];

const HEALTH: &[E] = &[
    E::BloodType,
    E::Condition,
    E::Dose,
    E::Drug,
    E::HealthcareNumber,
    E::Injury,
    E::MedicalCode,
    E::MedicalProcess,
    E::NameMedicalProfessional,
    E::OrganizationMedicalFacility,
    E::PhysicalAttribute,
    E::Statistics,
];

/// Race, beliefs, health and sex life: the "special categories" of the GDPR, article 9.
const SPECIAL_CATEGORIES: &[E] = &[
    E::Origin,
    E::PoliticalAffiliation,
    E::Religion,
    E::Sexuality,
    E::PhysicalAttribute,
    E::BloodType,
    E::Condition,
    E::Dose,
    E::Drug,
    E::HealthcareNumber,
    E::Injury,
    E::MedicalCode,
    E::MedicalProcess,
];

/// What makes a person identifiable together with other facts.
const ATTRIBUTES: &[E] = &[
    E::Age,
    E::Gender,
    E::Language,
    E::Location,
    E::LocationCity,
    E::LocationState,
    E::LocationCountry,
    E::MaritalStatus,
    E::Money,
    E::Occupation,
    E::Organization,
    E::OrganizationMedicalFacility,
    E::Filename,
    E::CreditCardExpiration,
    E::Cvv,
    E::RoutingNumber,
    E::ZodiacSign,
];

const DATES: &[E] = &[E::Date, E::DateInterval, E::Day, E::Month];

const COMPANY: &[E] = &[
    E::CorporateAction,
    E::Date,
    E::DateInterval,
    E::Effect,
    E::Event,
    E::FinancialMetric,
    E::Money,
    E::Organization,
    E::OrganizationId,
    E::Product,
    E::Project,
    E::Statistics,
    E::Trend,
];

const NUMBERS: &[E] = &[
    E::AccountNumber,
    E::Age,
    E::Date,
    E::DateInterval,
    E::Dob,
    E::DriverLicense,
    E::Duration,
    E::HealthcareNumber,
    E::IpAddress,
    E::LocationCoordinate,
    E::LocationZip,
    E::MedicalCode,
    E::Money,
    E::NumericalPii,
    E::OrganizationId,
    E::PassportNumber,
    E::PhoneNumber,
    E::Ssn,
    E::Time,
    E::VehicleId,
    E::Year,
];

/// Returns the kinds of a value of a request, which is a kind or a preset; empty if it is neither. The manual
/// (`docs/reference/redaction.md`) has the sources of the presets. Where a source leaves room, they have the larger set.
pub fn kinds_of(value: &str) -> BTreeSet<EntityType> {
    let union = |sets: &[&[E]]| sets.iter().flat_map(|set| set.iter().copied()).collect();
    match value {
        "APPI" | "CPRA" | "GDPR" | "QUEBEC_PRIVACY_ACT" => union(&[IDENTIFIERS, ATTRIBUTES, SPECIAL_CATEGORIES]),
        "APPI_SENSITIVE" | "GDPR_SENSITIVE" => union(&[SPECIAL_CATEGORIES]),
        "CCI" => union(&[COMPANY]),
        "CORE_ENTITIES" => union(&[IDENTIFIERS, CARD_DATA, ATTRIBUTES]),
        "HEALTH_INFORMATION" => union(&[HEALTH]),
        "HIPAA_SAFE_HARBOR" => {
            union(&[IDENTIFIERS, DATES, &[E::Age, E::Location, E::LocationCity, E::Organization, E::Filename]])
        }
        // What it stands for is not public.
        "LIDI" => EntityType::ALL.iter().copied().collect(),
        "NUMERICAL_EXCL_PCI" => union(&[NUMBERS]),
        "PCI" => union(&[CARD_DATA]),
        kind => EntityType::ALL.iter().copied().filter(|one| one.name() == kind).collect(),
    }
}

/// Whether a value of a request is a preset.
pub fn is_preset(value: &str) -> bool {
    PII_ENTITIES.contains(&value) && EntityType::ALL.iter().all(|one| one.name() != value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_the_interface_is_a_kind_or_a_preset() {
        let presets: Vec<&&str> = PII_ENTITIES.iter().filter(|value| is_preset(value)).collect();
        assert_eq!((presets.len(), EntityType::ALL.len()), (13, PII_ENTITIES.len() - 13));
        for value in PII_ENTITIES {
            assert_eq!(kinds_of(value).len() == 1, !is_preset(value), "{value}");
            assert!(!kinds_of(value).is_empty(), "{value}");
        }
        assert!(kinds_of("NOBODY").is_empty() && !is_preset("NOBODY"));
    }
}
